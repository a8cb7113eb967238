package schemas_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/schemas"
)

// endless is a property whose validation takes minutes for slow: each text takes as long as a match may.
const endless = `,"d":{"items":{"pattern":"^(?=a)(a+)+$"}}`

func slow(name string) string {
	return analysis(name, `,"d":["`+strings.Repeat("a", 40)+`!"`+strings.Repeat(`,"`+strings.Repeat("a", 40)+`!"`, 10_000)+`]`)
}

// TestQuarantine: a version whose validation takes too long takes no further analyses until a later version is registered.
func TestQuarantine(t *testing.T) {
	const limit = time.Second // what is quick takes microseconds
	reg := prometheus.NewRegistry()
	s, store := newService(t, schemas.Config{ValidationTime: limit, Metrics: schemas.NewMetrics(reg)})
	register(t, s, `{"name":"a","schema":`+dynamic(endless, "")+`}`)
	register(t, s, `{"name":"b","schema":`+simple+`}`)
	refused := func(t *testing.T, s *schemas.Service, body string) {
		t.Helper()
		_, err := s.Validate(t.Context(), "S1", body)
		wantError(t, err, core.CodeInvalid, "schema.violation", `validating it takes too long: version 1 of "a" took longer than 1s for an `+
			`analysis, and takes no others until a later version is registered`)
		if hint := core.HintOf(err); hint != "register a version whose schema refers to itself less often and has simpler expressions" {
			t.Errorf("hint %q", hint)
		}
		if got := violations(err); len(got) != 1 || got[0].Keyword != "schema" || got[0].Pointer != "" {
			t.Errorf("violations %+v", got)
		}
	}
	state := func(t *testing.T, s *schemas.Service, want ...datamodel.AnalysisTypeRef) {
		t.Helper()
		if got := s.Quarantined(); !slices.Equal(got, want) {
			t.Errorf("quarantined %v, want %v", got, want)
		}
	}
	metrics := func(t *testing.T, want string) {
		t.Helper()
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "tutti_schema_quarantined_versions", "tutti_schema_validations_total"); err != nil {
			t.Error(err)
		}
	}
	state(t, s)
	refused(t, s, slow("a"))
	t.Run("what is quick is refused too", func(t *testing.T) {
		refused(t, s, analysis("a", ""))
		state(t, s, datamodel.AnalysisTypeRef{Name: "a", Version: 1})
	})
	t.Run("other types are not", func(t *testing.T) {
		if _, err := s.Validate(t.Context(), "S1", analysis("b", "")); err != nil {
			t.Error(err)
		}
	})
	t.Run("metrics say so", func(t *testing.T) {
		metrics(t, `
# HELP tutti_schema_quarantined_versions Versions of analysis types that accept no analyses because validating one took too long.
# TYPE tutti_schema_quarantined_versions gauge
tutti_schema_quarantined_versions 1
# HELP tutti_schema_validations_total Analyses that were validated, by result.
# TYPE tutti_schema_validations_total counter
tutti_schema_validations_total{result="timeout"} 2
tutti_schema_validations_total{result="valid"} 1
`)
	})
	t.Run("a restart releases it", func(t *testing.T) {
		again, err := schemas.New(store, schemas.Config{ValidationTime: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if ref, err := again.Validate(t.Context(), "S1", analysis("a", "")); err != nil || ref.Version != 1 {
			t.Errorf("version %d, %v", ref.Version, err)
		}
	})
	t.Run("another type does not release it", func(t *testing.T) {
		register(t, s, `{"name":"b","schema":`+simple+`}`)
		refused(t, s, analysis("a", ""))
	})
	t.Run("a later version does", func(t *testing.T) {
		register(t, s, `{"name":"a","schema":`+simple+`}`)
		state(t, s)
		if ref, err := s.Validate(t.Context(), "S1", analysis("a", "")); err != nil || ref.Version != 2 {
			t.Errorf("version %d, %v", ref.Version, err)
		}
		metrics(t, `
# HELP tutti_schema_quarantined_versions Versions of analysis types that accept no analyses because validating one took too long.
# TYPE tutti_schema_quarantined_versions gauge
tutti_schema_quarantined_versions 0
# HELP tutti_schema_validations_total Analyses that were validated, by result.
# TYPE tutti_schema_validations_total counter
tutti_schema_validations_total{result="timeout"} 3
tutti_schema_validations_total{result="valid"} 2
`)
	})
}

// TestQuarantineEndsWhereAnotherProcessRegisters a later version.
func TestQuarantineEndsWhereAnotherProcessRegisters(t *testing.T) {
	s, store := newService(t, schemas.Config{ValidationTime: time.Second, Shared: true})
	register(t, s, `{"name":"a","schema":`+dynamic(endless, "")+`}`)
	_, err := s.Validate(t.Context(), "S1", slow("a"))
	wantError(t, err, core.CodeInvalid, "schema.violation", "validating it takes too long")
	second := store.types[0]
	second.Version, second.Schema = 2, []byte(simple)
	store.types = append(store.types, second)
	if ref, err := s.Validate(t.Context(), "S1", analysis("a", "")); err != nil || ref.Version != 2 || len(s.Quarantined()) != 0 {
		t.Errorf("version %d, %v, quarantined %v", ref.Version, err, s.Quarantined())
	}
}

// TestQuarantineWithoutCaller: the time of a validation ends when its caller has left, too, and with it the work.
func TestQuarantineWithoutCaller(t *testing.T) {
	s, _ := newService(t, schemas.Config{ValidationTime: time.Second})
	register(t, s, `{"name":"a","schema":`+dynamic(endless, "")+`}`)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		for !s.Validating() {
			runtime.Gosched()
		}
		cancel()
	})
	_, err := s.Validate(ctx, "S1", slow("a"))
	wantError(t, err, core.CodeUnavailable, "", "the check was canceled")
	s.Close()
	if len(s.Quarantined()) != 1 {
		t.Error("the version is not quarantined")
	}
}

// TestStoppedValidationsEnd: Close waits for what still validates, which would take an hour.
func TestStoppedValidationsEnd(t *testing.T) {
	s, _ := newService(t, schemas.Config{ValidationTime: 50 * time.Millisecond})
	// Each of a million items is checked by nine thousand schemas.
	register(t, s, `{"name":"a","schema":`+dynamic(`,"d":{"items":{"allOf":[`+strings.Repeat(`{"minimum":0},`, 9000)+`{}]}}`, "")+`}`)
	_, err := s.Validate(t.Context(), "S1", analysis("a", `,"d":[0`+strings.Repeat(",0", 900_000)+`]`))
	wantError(t, err, core.CodeInvalid, "schema.violation", "validating it takes too long")
	s.Close()
}
