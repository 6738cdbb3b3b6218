package paddock

import _ "embed"

//go:generate go run ./internal/licenses

// ThirdPartyLicenses is THIRD_PARTY_LICENSES: the license texts of the software that the binary contains.
//
//go:embed THIRD_PARTY_LICENSES
var ThirdPartyLicenses string
