// Command licenses writes THIRD_PARTY_LICENSES: the license texts of everything that the binary contains and that is
// not part of this module. These are the modules that cmd/paddock links on the systems that releases are built for, the
// Go standard library and runtime (go.txt), and Swagger UI, which the module swgui embeds without its license
// (swagger-ui.txt).
//
// Run it in the root of the module: go generate .
package main
