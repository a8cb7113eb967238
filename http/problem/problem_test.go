package problem_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"tutti/http/problem"
	"tutti/internal/core"
)

// TestNew: a problem has the status of its code, and nothing of the cause; the members of a surface are added to it.
func TestNew(t *testing.T) {
	secret := errors.New("s3cret at 10.0.0.1")
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"a cause": {
			&core.Error{Code: core.CodeUpstream, Message: "no answer", Hint: "wait", Err: secret},
			`{"type":"about:blank","title":"Bad Gateway","status":502,"detail":"no answer","instance":"/a","code":"upstream_error","hint":"wait","requestId":"r"`,
		},
		"an error of no code": {
			secret,
			`{"type":"about:blank","title":"Internal Server Error","status":500,"detail":"an internal error occurred","instance":"/a","code":"internal","requestId":"r"`,
		},
		"a payload": {
			&core.Error{Code: core.CodeInvalid, ErrorID: problem.ErrorIDPayload, Message: "m", Violations: []core.Violation{{Pointer: "/x", Message: "v"}}},
			`{"type":"about:blank","title":"Unprocessable Entity","status":422,"detail":"m","instance":"/a","code":"invalid","requestId":"r"`,
		},
	} {
		p := problem.New(tt.err, "/a", "r")
		for surface, p := range map[string]problem.Problem{
			"none": p, "index": p.WithIndexMembers(), "metadata": p.WithMetadataMembers("e", "/a", time.UnixMilli(7)),
		} {
			body, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(body); !strings.HasPrefix(got, tt.want) || strings.Contains(got, "s3cret") ||
				strings.Contains(got, `"successful":false,"details":`) != (surface == "index") ||
				strings.Contains(got, `"errorId":"e"`) != (surface == "metadata") || strings.Contains(got, `"violations":`) != (name == "a payload") {
				t.Errorf("%s, members of %s: %s", name, surface, got)
			}
		}
	}
}
