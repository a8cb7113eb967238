package sqon_test

import (
	"errors"
	"flag"
	"testing"

	"go.uber.org/goleak"

	"tutti/internal/core"
	"tutti/internal/filter/sqon"
)

var update = flag.Bool("update", false, "write the golden files")

func TestMain(m *testing.M) {
	// The laws need more than the default of one hundred runs; the command line can override it.
	if err := flag.Set("rapid.checks", "3000"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func parsed(t testing.TB, text string) sqon.Filter {
	t.Helper()
	f, err := sqon.Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return f
}

func printed(f sqon.Filter) string { return string(f.AppendJSON(nil)) }

// rejected checks the common form of errors, and returns the violations.
func rejected(t testing.TB, err error) []core.Violation {
	t.Helper()
	var e *core.Error
	if !errors.As(err, &e) || e.Code != core.CodeInvalid || e.Message == "" || len(e.Violations) == 0 ||
		len(e.Violations) > sqon.MaxViolations {
		t.Fatalf("%#v is not an error with violations", err)
	}
	for _, v := range e.Violations {
		if v.Message == "" || v.Keyword == "" || v.Pointer != "" && v.Pointer[0] != '/' {
			t.Fatalf("the violation %+v is not complete", v)
		}
	}
	return e.Violations
}
