package metadata_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata"
)

// TestSubmit: the stored document has the repository's members in Song's form, then the submission byte for byte, on one line.
func TestSubmit(t *testing.T) {
	now := &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 6789, time.UTC)}
	onWith(t, metadata.Config{Now: now.Now}, func(t *testing.T, w *fixture) {
		body := "{\n \"x\": [1, 2.50e1 ,\"\\u00e9é<>\\u2028\"],\"studyId\":\"" + S + `","files":[ {"objectId":"o",
			"fileName":"a.vcf", "fileMd5sum":"` + sum("a") + `","analysisId":"other","studyId":"other","info":{}}],
			"analysisType" : {"name":"variantCall"}, "analysisState":"PUBLISHED","createdAt":1,"updatedAt":2,"publishedAt":3,
			"firstPublishedAt":4,"analysisStateHistory":5,"ex\u0070eriment":{"k":null}}`
		id, err := w.Submit(t.Context(), S, []byte(body), false)
		if err != nil {
			t.Fatal(err)
		}
		if parsed, err := uuid.Parse(id); err != nil || parsed.Version() != 7 {
			t.Errorf("id %q: %v", id, err)
		}
		object := uuid.NewSHA1(uuid.NameSpaceOID, []byte(id+":a.vcf")).String()
		stored := w.body(id)
		at := regexp.MustCompile(`"createdAt":"(2026-01-02T03:0[45]:[0-9]{2}\.000006Z)"`).FindStringSubmatch(stored)
		if at == nil {
			t.Fatal("no time in", stored)
		}
		wantEqual(t, stored, `{"analysisId":"`+id+`","studyId":"`+S+`","analysisState":"UNPUBLISHED","createdAt":"`+at[1]+
			`","updatedAt":"`+at[1]+`","analysisStateHistory":[],"analysisType":{"name":"variantCall","version":3},`+
			"\"x\":[1,2.50e1,\"\\u00e9é<>\\u2028\"],\"files\":[{\"objectId\":\""+object+`","studyId":"`+S+`","analysisId":"`+id+
			`","fileName":"a.vcf","fileMd5sum":"`+sum("a")+`","info":{}}],"ex\u0070eriment":{"k":null}}`)
		wantEqual(t, w.validator.last(), `{"x":[1,2.50e1,"\u00e9é<>\u2028"],"studyId":"`+S+
			`","files":[{"fileName":"a.vcf","fileMd5sum":"`+sum("a")+`","info":{}}],"analysisType":{"name":"variantCall"},"ex\u0070eriment":{"k":null}}`)
		wantEqual(t, w.pending(), 0)
	})
}

func TestSubmitRefuses(t *testing.T) {
	tests := []struct {
		name, study, body string
		code              core.Code
		errorID, message  string
	}{
		{"not JSON", S, `{"a":}`, core.CodeInvalid, "payload.parsing", "the body is not valid JSON at byte 6"},
		{
			"id of an analysis", S, `{"analysisId":"x",` + payload("a")[1:], core.CodeInvalid, "schema.violation",
			"the analysis cannot be stored: /analysisId must not be set",
		},
		{"unknown study", "none", payload("a"), core.CodeNotFound, "study.id.does.not.exist", "the study does not exist"},
		{"study with NUL", "\x00", payload("a"), core.CodeNotFound, "study.id.does.not.exist", "the study does not exist"},
		{
			"another study", S, strings.Replace(payload("a"), S, "other", 1), core.CodeConflict, "study.id.mismatch",
			"the payload's studyId is not that of the path",
		},
		{"no study", S, strings.Replace(payload("a"), `"studyId"`, `"x"`, 1), core.CodeInvalid, "schema.violation", "not valid"},
		{"study that is no text", S, strings.Replace(payload("a"), `"`+S+`"`, `5`, 1), core.CodeInvalid, "schema.violation", "not valid"},
		{
			"old version", S, strings.Replace(payload("a"), `"variantCall"`, `"variantCall","version":2`, 1), core.CodeConflict,
			"analysis.type.incorrect.version", "not the latest",
		},
		{
			"no files", S, strings.Replace(payload(), `"files":[]`, `"files":{}`, 1), core.CodeInvalid, "schema.violation",
			"the analysis' files cannot be stored: /files must be an array of objects",
		},
		{"too large", S, strings.Replace(payload("a"), "1.50", strings.Repeat("1", 5000), 1), core.CodeTooLarge, "", "the analysis is too large to be stored"},
	}
	onWith(t, metadata.Config{MaxBytes: 4000}, func(t *testing.T, w *fixture) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				_, err := w.Submit(t.Context(), tt.study, []byte(tt.body), false)
				wantError(t, err, tt.code, tt.errorID, tt.message)
			})
		}
		info, err := w.Page(t.Context(), S, allStates(), 0, 0, func(datamodel.Analysis) error { return nil })
		if err != nil || info.Total != 0 {
			t.Error("something was stored:", info, err)
		}
	})
}

// TestSubmitManyFiles: more files than fit into one statement.
func TestSubmitManyFiles(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		names := make([]string, 150)
		for i := range names {
			names[i] = fmt.Sprintf("%d.vcf", i)
		}
		id, err := w.Submit(t.Context(), S, []byte(payload(names...)), false)
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, w.get(id, "files.#"), "150")
		_, err = w.Submit(t.Context(), S, []byte(payload("new", names[149], names[70])), false)
		wantError(t, err, core.CodeConflict, "duplicate.file",
			`the study already has files with the same MD5 sum: "149.vcf", "70.vcf"`)
		e, _ := errors.AsType[*core.Error](err)
		wantEqual(t, e.Violations, []core.Violation{
			{Pointer: "/files/1/fileMd5sum", Message: `is that of "149.vcf" of the analysis ` + id, Keyword: "duplicate"},
			{Pointer: "/files/2/fileMd5sum", Message: `is that of "70.vcf" of the analysis ` + id, Keyword: "duplicate"},
		})
		_, err = w.Submit(t.Context(), S, []byte(payload(names...)), false)
		wantError(t, err, core.CodeConflict, "duplicate.file",
			`the study already has files with the same MD5 sum: "0.vcf", "1.vcf", "2.vcf", "3.vcf", "4.vcf" and 145 more`)
		e, _ = errors.AsType[*core.Error](err)
		wantEqual(t, len(e.Violations), 100)
	})
}

func TestSubmitDuplicates(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		if err := w.CreateStudy(t.Context(), datamodel.Study{ID: "other"}); err != nil {
			t.Fatal(err)
		}
		w.submit("a")
		w.submit("jk")
		upper := strings.Replace(payload("jk"), sum("jk"), strings.ToUpper(sum("jk")), 1)
		if upper == payload("jk") {
			t.Fatal("the sum has no letters")
		}
		elsewhere := strings.Replace(payload("a"), S, "other", 1)
		same := strings.Replace(payload(), `"files":[`, `"files":[`+fileJSON("x", sum("x"))+","+fileJSON("y", sum("x")), 1)
		const refused = `the study already has files with the same MD5 sum: "a"`
		_, err := w.Submit(t.Context(), S, []byte(payload("a")), false)
		wantError(t, err, core.CodeConflict, "duplicate.file", refused)
		_, err = w.Submit(t.Context(), S, []byte(upper), false)
		wantError(t, err, core.CodeConflict, "duplicate.file", `the study already has files with the same MD5 sum: "jk"`)
		for _, ok := range []struct {
			name, study, body string
			allow             bool
		}{{"allowed", S, payload("a"), true}, {"another study", "other", elsewhere, false}, {"twice in one analysis", S, same, false}} {
			if _, err := w.Submit(t.Context(), ok.study, []byte(ok.body), ok.allow); err != nil {
				t.Errorf("%s: %v", ok.name, err)
			}
		}
	})
}

// TestSubmitRace: of concurrent submissions with the same MD5 sum one is accepted.
func TestSubmitRace(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		for round := range 10 {
			body := payload(fmt.Sprintf("race-%d", round), fmt.Sprintf("second-%d", round))
			errs := make([]error, 8)
			var group sync.WaitGroup
			for i := range errs {
				group.Go(func() { _, errs[i] = w.Submit(t.Context(), S, []byte(body), false) })
			}
			group.Wait()
			taken := 0
			for _, err := range errs {
				if err == nil {
					taken++
					continue
				}
				wantError(t, err, core.CodeConflict, "duplicate.file",
					fmt.Sprintf(`the study already has files with the same MD5 sum: "race-%d", "second-%d"`, round, round))
			}
			wantEqual(t, taken, 1)
		}
	})
}

func TestAnalysisNotFound(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		if err := w.CreateStudy(t.Context(), datamodel.Study{ID: "other"}); err != nil {
			t.Fatal(err)
		}
		id := w.submit("a")
		tests := []struct{ name, study, id, errorID, message string }{
			{"unknown", S, uuid.NewString(), "analysis.id.not.found", "the study has no analysis of this id"},
			{"no UUID", S, "x y", "analysis.id.not.found", "the study has no analysis of this id"},
			{"NUL", S, "\x00", "analysis.id.not.found", "the study has no analysis of this id"},
			{"of another study", "other", id, "analysis.id.not.found", "the study has no analysis of this id"},
			{"unknown study", "none", id, "study.id.does.not.exist", "the study does not exist"},
		}
		for _, tt := range tests {
			for name, do := range map[string]func() error{
				"read":    func() error { _, err := w.Analysis(t.Context(), tt.study, tt.id); return err },
				"replace": func() error { return w.Replace(t.Context(), tt.study, tt.id, []byte(payload("b"))) },
				"merge":   func() error { return w.Merge(t.Context(), tt.study, tt.id, []byte(`{"x":1}`)) },
				"publish": func() error { return w.SetState(t.Context(), tt.study, tt.id, datamodel.StatePublished, false) },
			} {
				t.Run(tt.name+"/"+name, func(t *testing.T) { wantError(t, do(), core.CodeNotFound, tt.errorID, tt.message) })
			}
		}
		wantEqual(t, w.get(id, "analysisState"), "UNPUBLISHED")
	})
}

func TestReplace(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		id := w.submit("a")
		w.set(id, datamodel.StatePublished)
		w.drain()
		before := w.body(id)
		// The document is sent back, with another experiment and one more file.
		sent := strings.Replace(before, `"ratio":1.50`, `"ratio":2`, 1)
		sent = strings.Replace(sent, `"SNV"}]`, `"SNV"},`+fileJSON("b", sum("b"))+`]`, 1)
		if err := w.Replace(t.Context(), S, id, []byte(sent)); err != nil {
			t.Fatal(err)
		}
		after := w.body(id)
		for _, kept := range []string{
			"analysisId", "studyId", "analysisState", "createdAt", "firstPublishedAt", "publishedAt", "analysisStateHistory", "files.0",
		} {
			wantEqual(t, gjson.Get(after, kept).Raw, gjson.Get(before, kept).Raw)
		}
		if gjson.Get(after, "updatedAt").Str <= gjson.Get(before, "updatedAt").Str {
			t.Error("updatedAt did not grow")
		}
		wantEqual(t, gjson.Get(after, "experiment").Raw, `{"tool":"Sanger","ratio":2}`)
		wantEqual(t, gjson.Get(after, "files.1.analysisId").Str, id)
		events := w.drain()
		if len(events) != 1 || events[0].Study != S || events[0].AnalysisID != id {
			t.Errorf("events %+v", events)
		}

		// The first file is removed, which frees its sum; that of the new file is taken.
		if err := w.Replace(t.Context(), S, id, []byte(payload("b"))); err != nil {
			t.Fatal(err)
		}
		w.submit("a")
		_, err := w.Submit(t.Context(), S, []byte(payload("b")), false)
		wantError(t, err, core.CodeConflict, "duplicate.file", `the study already has files with the same MD5 sum: "b"`)
		err = w.Replace(t.Context(), S, id, []byte(payload("b", "a")))
		wantError(t, err, core.CodeConflict, "duplicate.file", `the study already has files with the same MD5 sum: "a"`)
	})
}

// TestReplaceAsSong: a body without study and files, as Song's clients send it, keeps both.
func TestReplaceAsSong(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		id := w.submit("a")
		before := w.body(id)
		if err := w.Replace(t.Context(), S, id, []byte(`{"analysisType":{"name":"variantCall"},"experiment":{"tool":"other"}}`)); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, w.get(id, "experiment"), `{"tool":"other"}`)
		wantEqual(t, w.get(id, "files"), gjson.Get(before, "files").Raw)
		wantEqual(t, gjson.Get(w.validator.last(), "studyId").Str, S)
		wantEqual(t, gjson.Get(w.validator.last(), "files.0.objectId").Exists(), false)
		if _, err := w.Submit(t.Context(), S, []byte(payload("a")), false); core.CodeOf(err) != core.CodeConflict {
			t.Errorf("the MD5 sum of the kept file is free: %v", err)
		}
	})
}

// TestMergeVersion: a patch that names no version is checked against the latest one, or against the analysis' own with KeepVersion.
func TestMergeVersion(t *testing.T) {
	for _, keep := range []bool{false, true} {
		t.Run(fmt.Sprint(keep), func(t *testing.T) {
			onWith(t, metadata.Config{KeepVersion: keep}, func(t *testing.T, w *fixture) {
				id := w.submit("a")
				if err := w.Merge(t.Context(), S, id, []byte(`{"added":1}`)); err != nil {
					t.Fatal(err)
				}
				wantEqual(t, gjson.Get(w.validator.last(), "analysisType.version").Exists(), keep)
				wantEqual(t, w.get(id, "analysisType"), `{"name":"variantCall","version":3}`)
			})
		})
	}
}

// TestDisableOutbox: without an outbox no events are written.
func TestDisableOutbox(t *testing.T) {
	onWith(t, metadata.Config{DisableOutbox: true}, func(t *testing.T, w *fixture) {
		w.set(w.submit("a"), datamodel.StatePublished)
		wantEqual(t, w.pending(), 0)
	})
}

// TestReplaceKeepsAllowedDuplicates: a sum that the analysis had before is accepted.
func TestReplaceKeepsAllowedDuplicates(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		w.submit("a")
		id, err := w.Submit(t.Context(), S, []byte(payload("a")), true)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Replace(t.Context(), S, id, []byte(payload("a"))); err != nil {
			t.Error(err)
		}
		if err := w.Merge(t.Context(), S, id, []byte(`{"experiment":{"tool":"other"}}`)); err != nil {
			t.Error(err)
		}
		wantEqual(t, w.get(id, "experiment"), `{"tool":"other","ratio":1.50}`)
	})
}

func TestChangesRefuse(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		id := w.submit("a")
		before := w.body(id)
		tests := []struct {
			name             string
			merge            bool
			body             string
			code             core.Code
			errorID, message string
		}{
			{"replace with no JSON", false, `x`, core.CodeInvalid, "payload.parsing", "the body is not valid JSON at byte 1"},
			{
				"replace with another id", false, `{"analysisId":"x",` + payload("a")[1:], core.CodeInvalid, "malformed.parameter",
				"the payload's analysisId is not that of the path",
			},
			{
				"replace with another study", false, strings.Replace(payload("a"), S, "x", 1), core.CodeConflict, "study.id.mismatch",
				"the payload's studyId is not that of the path",
			},
			{"replace with what is not valid", false, `{"studyId":"` + S + `","analysisType":{"name":"other"}}`, core.CodeInvalid, "schema.violation", "not valid"},
			{
				"replace with a name twice", false, payload("a", "a"), core.CodeConflict, "duplicate.file",
				`the analysis has several files with the same name: "a"`,
			},
			{"merge of no object", true, `["x"]`, core.CodeInvalid, "payload.parsing", "the body is not a JSON object"},
			{
				"merge of another study", true, `{"studyId":"x"}`, core.CodeConflict, "study.id.mismatch",
				"the payload's studyId is not that of the path",
			},
			{
				"merge of a state", true, `{"analysisState":"PUBLISHED"}`, core.CodeInvalid, "malformed.parameter",
				"the state of an analysis cannot be changed by a patch",
			},
			{"merge that takes the type away", true, `{"analysisType":null}`, core.CodeInvalid, "schema.violation", "not valid"},
			{
				"merge of an old version", true, `{"analysisType":{"version":2}}`, core.CodeConflict, "analysis.type.incorrect.version",
				"not the latest",
			},
			{
				"merge that takes the files away", true, `{"files":null}`, core.CodeInvalid, "schema.violation",
				"the analysis' files cannot be stored: /files must be an array of objects",
			},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				do := w.Replace
				if tt.merge {
					do = w.Merge
				}
				err := do(t.Context(), S, id, []byte(tt.body))
				wantError(t, err, tt.code, tt.errorID, tt.message)
				wantEqual(t, w.body(id), before)
			})
		}
		wantEqual(t, w.LockedAnalyses(), 0)
	})
}

// TestMerge: a merge patch changes what it names; reserved members stay, whatever their value in the patch.
func TestMerge(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		id := w.submit("a")
		before := w.body(id)
		patch := `{"analysisId":"` + id + `","studyId":"` + S + `","analysisState":"UNPUBLISHED","createdAt":null,"publishedAt":"x",
			"analysisStateHistory":null,"experiment":{"tool":null,"new":{"a":null,"b":[null,1.0]}},"added":"é"}`
		if err := w.Merge(t.Context(), S, id, []byte(patch)); err != nil {
			t.Fatal(err)
		}
		after := w.body(id)
		wantEqual(t, gjson.Get(after, "experiment").Raw, `{"ratio":1.50,"new":{"b":[null,1.0]}}`)
		wantEqual(t, gjson.Get(after, "added").Raw, `"é"`)
		for _, kept := range []string{"analysisId", "createdAt", "analysisStateHistory", "files", "analysisType"} {
			wantEqual(t, gjson.Get(after, kept).Raw, gjson.Get(before, kept).Raw)
		}
		wantEqual(t, gjson.Get(after, "publishedAt").Exists(), false)

		// The list of files is replaced whole; a file with the same name keeps its object.
		files := `{"files":[` + fileJSON("b", sum("b")) + "," + gjson.Get(after, "files.0").Raw + `]}`
		if err := w.Merge(t.Context(), S, id, []byte(files)); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, w.get(id, "files.1"), gjson.Get(after, "files.0").Raw)
		wantEqual(t, w.pending(), 0)
	})
}

// TestConcurrentMerges: of many concurrent patches of one analysis none is lost, although the validator is slow.
func TestConcurrentMerges(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		id := w.submit("a")
		const patches = 50
		var group sync.WaitGroup
		for i := range patches {
			group.Go(func() {
				if err := w.Merge(t.Context(), S, id, fmt.Appendf(nil, `{"m%d":%d}`, i, i)); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		for i := range patches {
			wantEqual(t, w.get(id, fmt.Sprintf("m%d", i)), fmt.Sprint(i))
		}
		wantEqual(t, w.LockedAnalyses(), 0)
	})
}

// TestMergesOfTwoProcesses: the same with two independent repositories.
func TestMergesOfTwoProcesses(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		other := newFixture(t, w.store, metadata.Config{})
		id := w.submit("a")
		const patches = 30
		var group sync.WaitGroup
		for i := range patches {
			group.Go(func() {
				one := []*fixture{w, other}[i%2]
				if err := one.Merge(t.Context(), S, id, fmt.Appendf(nil, `{"m%d":%d}`, i, i)); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		for i := range patches {
			wantEqual(t, w.get(id, fmt.Sprintf("m%d", i)), fmt.Sprint(i))
		}
	})
}

// TestConcurrentChange: an analysis that is published during the validation of a replacement or patch stays published, and a patch
// is merged into concurrent changes.
func TestConcurrentChange(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		other := newFixture(t, w.store, metadata.Config{})
		for name, do := range map[string]func(id string) error{
			"replace": func(id string) error { return w.Replace(t.Context(), S, id, []byte(payload("f-replace"))) },
			"merge":   func(id string) error { return w.Merge(t.Context(), S, id, []byte(`{"mine":1}`)) },
		} {
			t.Run(name, func(t *testing.T) {
				id := w.submit("f-" + name)
				var once sync.Once
				w.validator.before = func(context.Context, string) error {
					once.Do(func() {
						if err := other.SetState(t.Context(), S, id, datamodel.StatePublished, false); err != nil {
							t.Error(err)
						}
						if err := other.Merge(t.Context(), S, id, []byte(`{"theirs":1}`)); err != nil {
							t.Error(err)
						}
					})
					return nil
				}
				defer func() { w.validator.before = nil }()
				if err := do(id); err != nil {
					t.Fatal(err)
				}
				wantEqual(t, w.get(id, "analysisState"), "PUBLISHED")
				wantEqual(t, w.get(id, "analysisStateHistory.#"), "1")
				if name == "merge" {
					wantEqual(t, w.get(id, "mine")+w.get(id, "theirs"), "11")
				}
				wantEqual(t, len(w.drain()), 3)
			})
		}
	})
}

// TestConcurrentSameFile: a file that is concurrently added to the same analysis is not a duplicate.
func TestConcurrentSameFile(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		other := newFixture(t, w.store, metadata.Config{})
		id := w.submit("a")
		var once sync.Once
		w.validator.before = func(context.Context, string) error {
			once.Do(func() {
				if err := other.Replace(t.Context(), S, id, []byte(payload("a", "b"))); err != nil {
					t.Error(err)
				}
			})
			return nil
		}
		if err := w.Replace(t.Context(), S, id, []byte(payload("b"))); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, w.get(id, "files.#.fileName"), `["b"]`)
	})
}

// TestConcurrentSuppression: an analysis that is suppressed during the validation of its replacement stays as it is.
func TestConcurrentSuppression(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		id := w.submit("a")
		w.validator.before = func(context.Context, string) error {
			return w.SetState(t.Context(), S, id, datamodel.StateSuppressed, false)
		}
		err := w.Replace(t.Context(), S, id, []byte(payload("b")))
		wantError(t, err, core.CodeConflict, "suppressed.state.transition", "the analysis is suppressed, which is final")
		wantEqual(t, w.get(id, "files.0.fileName"), "a")
	})
}

// TestWaitingForLock: waiting for another change of the analysis ends with the context.
func TestWaitingForLock(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		id := w.submit("a")
		ctx, cancel := context.WithCancel(t.Context())
		w.validator.before = func(context.Context, string) error {
			cancel()
			err := w.Merge(ctx, S, id, []byte(`{"second":1}`))
			wantError(t, err, core.CodeUnavailable, "", "waiting for another change of the analysis")
			return nil
		}
		if err := w.Merge(t.Context(), S, id, []byte(`{"first":1}`)); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, w.get(id, "first")+w.get(id, "second"), "1")
		wantEqual(t, w.LockedAnalyses(), 0)
	})
}

// TestMergeGrows: patches that would make an analysis too large are rejected and leave it as it was.
func TestMergeGrows(t *testing.T) {
	onWith(t, metadata.Config{MaxBytes: 2000}, func(t *testing.T, w *fixture) {
		id := w.submit("a")
		var err error
		for i := 0; err == nil && i < 10; i++ {
			err = w.Merge(t.Context(), S, id, fmt.Appendf(nil, `{"m%d":%q}`, i, strings.Repeat("x", 500)))
		}
		wantError(t, err, core.CodeTooLarge, "", "the analysis is too large to be stored")
		if hint := core.HintOf(err); !regexp.MustCompile(`^it has 2\d\d\d bytes; the limit is 2000, index.maxRecordBytes in the configuration$`).MatchString(hint) {
			t.Errorf("hint %q", hint)
		}
		if size := len(w.body(id)); size > 2000 {
			t.Error("stored bytes:", size)
		}
	})
}

// TestValidatorUnavailable: an error of the validator is returned unchanged, and nothing is stored.
func TestValidatorUnavailable(t *testing.T) {
	on(t, func(t *testing.T, w *fixture) {
		w.validator.before = func(context.Context, string) error {
			return core.NewError(core.CodeUnavailable, "the analysis types cannot be read")
		}
		_, err := w.Submit(t.Context(), S, []byte(payload("a")), false)
		wantError(t, err, core.CodeUnavailable, "", "the analysis types cannot be read")
		wantEqual(t, w.validator.calls(), 1)
	})
}
