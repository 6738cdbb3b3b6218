package wire

// Every answer of the service has the header HeaderAPI with the value APIVersion. Clients take an answer without it for
// that of another server, such as a proxy or a captive portal, even if it has no body.
const (
	HeaderAPI  = "Paddock-Api"
	APIVersion = "v1"
)
