package natsconn

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"tutti/internal/core"
)

// TestRefusalsThatPass: what a server refuses for the moment is sent again, by a caller who is told when.
func TestRefusalsThatPass(t *testing.T) {
	for _, tt := range []struct {
		api  jetstream.APIError
		want core.Code
	}{
		{jetstream.APIError{Code: 409, ErrorCode: 10158, Description: "duplicate message id is in process"}, core.CodeUnavailable},
		{jetstream.APIError{Code: 429, ErrorCode: 10167, Description: "too many requests"}, core.CodeOverloaded},
		{jetstream.APIError{Code: 503, ErrorCode: 10163, Description: "expected last sequence per subject temporarily unavailable"}, core.CodeUnavailable},
		{jetstream.APIError{Code: 503, ErrorCode: 10077, Description: "maximum messages exceeded"}, core.CodeOverloaded},
	} {
		err := WrapError("publishing", &tt.api)
		if core.CodeOf(err) != tt.want || core.RetryAfterOf(err) <= 0 || !core.Retryable(err) {
			t.Errorf("%s: code %q, retry after %s", tt.api.Description, core.CodeOf(err), core.RetryAfterOf(err))
		}
	}
}
