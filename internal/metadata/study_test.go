package metadata_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata"
)

func TestStudies(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		study := datamodel.Study{
			ID: "b.1_2-3", Name: "Naïve \"B\"", Organization: "OICR", Description: "two\nlines", Info: json.RawMessage(`{"b": "\u0000", "a":[1.0]}`),
		}
		for _, s := range []datamodel.Study{study, {ID: "Zeta"}, {ID: "0", Name: "zero"}} {
			if err := w.CreateStudy(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		ids, err := w.Studies(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, ids, []string{"0", S, "Zeta", "b.1_2-3"})
		got, err := w.Study(t.Context(), study.ID)
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, got, study)
	})
}

func TestUnknownStudy(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		for _, id := range []string{"none", "nul\x00", "bad\xff", ""} {
			_, err := w.Study(t.Context(), id)
			wantError(t, err, core.CodeNotFound, "study.id.does.not.exist", "the study does not exist")
		}
	})
}

func TestCreateStudyRefuses(t *testing.T) {
	const grammar = "the id of a study must start with a letter or a digit and contain only letters, digits, dots, underscores and hyphens"
	const describing = "the name, the organization and the description of a study must be UTF-8 text of at most 64 KiB without NUL characters"
	onWith(t, metadata.Config{SystemScope: "portal"}, func(t *testing.T, w *fixture) {
		tests := []struct {
			name, message string
			study         datamodel.Study
		}{
			{"empty", grammar, datamodel.Study{}},
			{"begins with a dot", grammar, datamodel.Study{ID: ".a"}},
			{"slash", grammar, datamodel.Study{ID: "a/b"}},
			{"blank", grammar, datamodel.Study{ID: "a b"}},
			{"line feed at the end", grammar, datamodel.Study{ID: "a\n"}},
			{"not ASCII", grammar, datamodel.Study{ID: "é"}},
			{"not ASCII inside", grammar, datamodel.Study{ID: "aé"}},
			{"not UTF-8", grammar, datamodel.Study{ID: "a\xff"}},
			{"too long", "the id of a study must have at most 512 bytes", datamodel.Study{ID: strings.Repeat("a", 513)}},
			{"system scope", "the id of a study must not be the system's scope", datamodel.Study{ID: "portal"}},
			{"path of the list", `the id of a study must not be "all", which is the path of the list of studies`, datamodel.Study{ID: "all"}},
			{"NUL in the name", describing, datamodel.Study{ID: "a", Name: "\x00"}},
			{"not UTF-8 in the description", describing, datamodel.Study{ID: "a", Description: "\xff"}},
			{"information too long", "the info of a study must have at most 65536 bytes", datamodel.Study{ID: "a", Info: json.RawMessage(`{"a":"` + strings.Repeat("a", 64<<10) + `"}`)}},
			{"organization too long", describing, datamodel.Study{ID: "a", Organization: strings.Repeat("a", 64<<10+1)}},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				wantError(t, w.CreateStudy(t.Context(), tt.study), core.CodeInvalid, "malformed.parameter", tt.message)
			})
		}
		if err := w.CreateStudy(t.Context(), datamodel.Study{ID: strings.Repeat("a", 512)}); err != nil {
			t.Error(err)
		}
		if err := w.CreateStudy(t.Context(), datamodel.Study{ID: "tutti"}); err != nil {
			t.Error("the default scope is not the system's here:", err)
		}
	})
}

func TestCreateStudyOnce(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		errs := make([]error, 8)
		var group sync.WaitGroup
		for i := range errs {
			group.Go(func() { errs[i] = w.CreateStudy(t.Context(), datamodel.Study{ID: "raced"}) })
		}
		group.Wait()
		created := 0
		for _, err := range errs {
			if err == nil {
				created++
				continue
			}
			wantError(t, err, core.CodeConflict, "study.already.exists", "the study already exists")
		}
		wantEqual(t, created, 1)
	})
}

func TestNewRefuses(t *testing.T) {
	tests := []struct {
		name, message string
		cfg           metadata.Config
	}{
		{
			"state", "an indexed state must be UNPUBLISHED, PUBLISHED or SUPPRESSED",
			metadata.Config{IndexedStates: []datamodel.AnalysisState{"published"}},
		},
		{"size", "the maximum size of an analysis must not be negative", metadata.Config{MaxBytes: -1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := metadata.New(nil, nil, tt.cfg)
			wantError(t, err, core.CodeInvalid, "", tt.message)
		})
	}
}
