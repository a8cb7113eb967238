package signing_test

import (
	"strings"
	"testing"

	"tutti/ingest/signing"
	"tutti/internal/core"
)

func TestCheck(t *testing.T) {
	// The example of GitHub's documentation of X-Hub-Signature-256.
	secret, body := "It's a Secret to Everybody", "Hello, World!"
	const right = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	if got := signing.Sign(secret, []byte(body)); got != right {
		t.Errorf("signed as %s", got)
	}
	for name, tt := range map[string]struct{ secret, body, signature, message string }{
		"right":              {secret, body, right, ""},
		"capital digits":     {secret, body, "sha256=" + strings.ToUpper(right[7:]), ""},
		"missing":            {secret, body, "", "the signature is missing"},
		"another secret":     {"another", body, right, "the signature does not match"},
		"another body":       {secret, body + " ", right, "the signature does not match"},
		"without prefix":     {secret, body, right[7:], "the signature does not match"},
		"another hash":       {secret, body, "sha1=" + right[7:], "the signature does not match"},
		"half":               {secret, body, right[:39], "the signature does not match"},
		"more":               {secret, body, right + "00", "the signature does not match"},
		"prefix alone":       {secret, body, "sha256=", "the signature does not match"},
		"no hexadecimal":     {secret, body, "sha256=" + strings.Repeat("zz", 32), "the signature does not match"},
		"space":              {secret, body, " " + right, "the signature does not match"},
		"one bit is another": {secret, body, right[:len(right)-1] + "6", "the signature does not match"},
	} {
		t.Run(name, func(t *testing.T) {
			err := signing.Check(tt.secret, []byte(tt.body), tt.signature)
			if tt.message == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if core.CodeOf(err) != core.CodeUnauthenticated || core.MessageOf(err) != tt.message || core.HintOf(err) == "" {
				t.Errorf("got %q %v", core.CodeOf(err), err)
			}
		})
	}
}

// FuzzCheck: only a body's own signature is taken, in whatever case its digits are.
func FuzzCheck(f *testing.F) {
	f.Add("secret", []byte("{}"), "sha256=00")
	f.Add("", []byte(nil), "")
	f.Fuzz(func(t *testing.T, secret string, body []byte, signature string) {
		right := signing.Sign(secret, body)
		if err := signing.Check(secret, body, right); err != nil {
			t.Fatalf("the right one is refused: %v", err)
		}
		if signing.Check(secret, body, signature) == nil && !strings.EqualFold(signature, right) {
			t.Fatalf("%q is taken for %q", signature, right)
		}
		if signing.Check(secret, append(body, 'x'), right) == nil {
			t.Fatal("a changed body is taken")
		}
	})
}
