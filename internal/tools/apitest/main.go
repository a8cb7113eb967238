package apitest

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"
	"go.uber.org/goleak"
)

// Main runs the tests of a package, and fails if goroutines are left at their end. It is called by TestMain.
func Main(m *testing.M) {
	openapi3filter.RegisterBodyDecoder("application/x-ndjson", openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/graphql-response+json", openapi3filter.JSONBodyDecoder)
	for _, text := range []string{
		"text/event-stream", "text/html", "text/css", "text/javascript", "image/png", "text/tab-separated-values", "text/csv", "application/gzip", "application/x-tar",
	} {
		openapi3filter.RegisterBodyDecoder(text, openapi3filter.PlainBodyDecoder)
	}
	goleak.VerifyTestMain(m)
}
