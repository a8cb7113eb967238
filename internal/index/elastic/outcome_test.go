package elastic_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/index/elastic"
)

// TestOutcomes is the truth table of single documents. The answers are Elasticsearch's own, as seen.
func TestOutcomes(t *testing.T) {
	tests := []struct {
		name   string
		op     core.WriteOp
		status int
		kind   string
		reason string
		want   core.Result
	}{
		{"created", core.OpIndex, 201, "", "", core.Result{Outcome: core.OutcomeIndexed}},
		{"replaced", core.OpIndex, 200, "", "", core.Result{Outcome: core.OutcomeIndexed}},
		{"deleted", core.OpDelete, 200, "", "", core.Result{Outcome: core.OutcomeRemoved}},
		{"delete of a missing document", core.OpDelete, 404, "", "", core.Result{Outcome: core.OutcomeRemoved}},
		{
			"index of an older version", core.OpIndex, 409, "version_conflict_engine_exception",
			"[current version [3] ]: version conflict, current version [1763716000123456789] is higher than the one provided [9]",
			core.Result{Outcome: core.OutcomeStale, CurrentVersion: 1763716000123456789},
		},
		{
			"delete of an older version", core.OpDelete, 409, "version_conflict_engine_exception",
			"[v]: version conflict, current version [10] is higher than the one provided [8]",
			core.Result{Outcome: core.OutcomeStale, CurrentVersion: 10},
		},
		{
			"conflict without versions", core.OpIndex, 409, "version_conflict_engine_exception", "[v]: version conflict",
			core.Result{Outcome: core.OutcomeStale},
		},
		{
			"value of the wrong type", core.OpIndex, 400, "document_parsing_exception", "failed to parse field [n]",
			core.Result{Outcome: core.OutcomeRejected},
		},
		{
			"wrong type, older exception", core.OpIndex, 400, "mapper_parsing_exception", "failed to parse",
			core.Result{Outcome: core.OutcomeRejected},
		},
		{
			"invalid argument: the document", core.OpIndex, 400, "illegal_argument_exception",
			"if _id is specified it must not be empty",
			core.Result{Outcome: core.OutcomeRejected},
		},
		{
			"invalid argument: no write index", core.OpIndex, 400, "illegal_argument_exception",
			"no write index is defined for alias [a]. The write index may be explicitly disabled",
			core.Result{Outcome: core.OutcomeRetry, Code: core.CodeIndexBlocked},
		},
		{
			"invalid argument: index full", core.OpIndex, 400, "illegal_argument_exception",
			"Number of documents in the index can't exceed [2147483519]",
			core.Result{Outcome: core.OutcomeRetry, Code: core.CodeIndexBlocked},
		},
		{
			"invalid id", core.OpIndex, 400, "action_request_validation_exception", "Validation Failed: 1: id is too long",
			core.Result{Outcome: core.OutcomeRejected},
		},
		{
			"closed index", core.OpIndex, 400, "index_closed_exception", "closed",
			core.Result{Outcome: core.OutcomeRetry, Code: core.CodeIndexBlocked},
		},
		{
			"blocked index", core.OpDelete, 403, "cluster_block_exception", "index [a] blocked by: [FORBIDDEN/8/index write (api)];",
			core.Result{Outcome: core.OutcomeRetry, Code: core.CodeIndexBlocked},
		},
		{
			"full disk", core.OpIndex, 429, "cluster_block_exception",
			"index [a] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage watermark]",
			core.Result{Outcome: core.OutcomeRetry, Code: core.CodeIndexBlocked},
		},
		{
			"full disk, older engine", core.OpIndex, 403, "cluster_block_exception",
			"index [a] blocked by: [FORBIDDEN/12/index read-only / allow delete (api)];",
			core.Result{Outcome: core.OutcomeRetry, Code: core.CodeIndexBlocked},
		},
		{
			"no elected master", core.OpIndex, 503, "cluster_block_exception", "blocked by: [SERVICE_UNAVAILABLE/2/no master];",
			core.Result{Outcome: core.OutcomeRetry, Code: core.CodeOverloaded},
		},
		{
			"missing index", core.OpIndex, 404, "index_not_found_exception", "no such index [a] and [require_alias] request flag",
			core.Result{Outcome: core.OutcomeRetry, Code: core.CodeIndexBlocked},
		},
		{
			"delete in a missing index", core.OpDelete, 404, "index_not_found_exception", "no such index [a]",
			core.Result{Outcome: core.OutcomeRetry, Code: core.CodeIndexBlocked},
		},
		{
			"missing privilege", core.OpIndex, 403, "security_exception", "action is unauthorized",
			core.Result{Outcome: core.OutcomeRetry, Code: core.CodeIndexBlocked},
		},
		{
			"full write queue", core.OpIndex, 429, "es_rejected_execution_exception", "rejected execution",
			core.Result{Outcome: core.OutcomeRetry, Code: core.CodeOverloaded},
		},
		{
			"circuit breaker", core.OpIndex, 429, "circuit_breaking_exception", "Data too large",
			core.Result{Outcome: core.OutcomeRetry, Code: core.CodeOverloaded},
		},
		{
			"missing shard", core.OpIndex, 503, "unavailable_shards_exception", "primary shard is not active",
			core.Result{Outcome: core.OutcomeRetry, Code: core.CodeUnavailable},
		},
		{
			"internal error", core.OpIndex, 500, "null_pointer_exception", "",
			core.Result{Outcome: core.OutcomeRetry, Code: core.CodeOverloaded},
		},
		{
			"unknown exception", core.OpIndex, 400, "brand_new_exception", "secret",
			core.Result{Outcome: core.OutcomeRetry, Code: core.CodeOverloaded},
		},
		{
			"404 without an error for an index operation", core.OpIndex, 404, "", "",
			core.Result{Outcome: core.OutcomeRetry, Code: core.CodeOverloaded},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			name, fault, neverApplied := "index", "", ""
			if tt.op == core.OpDelete {
				name = "delete"
				neverApplied = `,{"index":{"status":409,"error":{"type":"version_conflict_engine_exception","reason":"no document"}}}`
			}
			if tt.kind != "" {
				fault = fmt.Sprintf(`,"error":{"type":%q,"reason":%q}`, tt.kind, tt.reason)
			}
			url := answering(t, 200, fmt.Sprintf(`{"errors":%t,"items":[{%q:{"status":%d%s}}%s]}`,
				fault+neverApplied != "", name, tt.status, fault, neverApplied))
			x := open(t, url)
			results, err := x.Write(t.Context(), batch(x, "a", core.Write{Op: tt.op, ID: "v", Version: 9, Document: []byte("{}")}))
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Type, tt.want.Reason = tt.kind, tt.reason
			if diff := cmp.Diff([]core.Result{tt.want}, results); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestCauseIsPartOfTheReason(t *testing.T) {
	x := open(t, answering(t, 200, `{"errors":true,"items":[{"index":{"status":400,"error":{"type":"document_parsing_exception",`+
		`"reason":"failed to parse field [n] of type [long]","caused_by":{"reason":"For input string: \"x\""}}}}]}`))
	results, err := x.Write(t.Context(), batch(x, "a", put("v", 9, `{}`)))
	if err != nil {
		t.Fatal(err)
	}
	if want := `failed to parse field [n] of type [long]: For input string: "x"`; results[0].Reason != want {
		t.Errorf("got %q, want %q", results[0].Reason, want)
	}
}

// TestLongReasonKeepsItsCause: Elasticsearch 8 quotes a whole value before the cause, which must not be cut off with it.
func TestLongReasonKeepsItsCause(t *testing.T) {
	x := open(t, answering(t, 200, `{"errors":true,"items":[{"index":{"status":400,"error":{"type":"document_parsing_exception",`+
		`"reason":"failed to parse field [k]. Preview of field's value: '`+strings.Repeat("x", 33_000)+`'","caused_by":{`+
		`"type":"illegal_argument_exception","reason":"Document contains at least one immense term in field=\"k\" (whose UTF8 encoding"}}}}]}`))
	results, err := x.Write(t.Context(), batch(x, "a", put("v", 9, `{}`)))
	if err != nil {
		t.Fatal(err)
	}
	r := results[0]
	if len(r.Reason) > 4200 || !strings.HasPrefix(r.Reason, "failed to parse field [k]") || !strings.Contains(r.Reason, `immense term in field="k"`) ||
		!strings.HasPrefix(r.Hint, "a value of the field k has more than 32,766 bytes") {
		t.Errorf("got %+v", r)
	}
}

// TestHints: the hint for a value that is too long names the field as it is in the mapping file.
func TestHints(t *testing.T) {
	for reason, want := range map[string]string{
		`Document contains at least one immense term in field="n.k" (whose`: "a value of the field n.k has more than 32,766 bytes, the most " +
			"that the engine indexes: shorten it, or set ignore_above of the field in the mapping file, so that longer values are stored but " +
			"not searched; then retry",
		`Document contains at least one immense term in field="s.info._value" (whose`: "a value in the free-form object s.info ",
		`Document contains at least one immense term in field="f._valueAndPath" (wh`:  "a value in the free-form object f ",
		`Flattened field [f] contains one immense field whose keyed encoding is lon`: "a value in the free-form object f has more than " +
			"32,766 bytes together with its path, the most that the engine indexes: shorten it, or map the object with enabled: false in " +
			"the mapping file, so that it is stored but not searched; then retry",
		`The provided [flattened] field [f] exceeds the maximum depth limit of [20].`: "",
		`Flattened field [f] is closed`:                                               "",
	} {
		quoted := strings.ReplaceAll(reason, `"`, `\"`)
		x := open(t, answering(t, 200, `{"errors":true,"items":[{"index":{"status":400,"error":{"type":"illegal_argument_exception","reason":"`+quoted+`"}}}]}`))
		results, err := x.Write(t.Context(), batch(x, "a", put("v", 9, `{}`)))
		if err != nil {
			t.Fatal(err)
		}
		if got := results[0].Hint; !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: got the hint %q, want %q", reason, got, want)
		}
	}
}

func TestReasonsAreBounded(t *testing.T) {
	long := strings.Repeat("é", 100_000)
	x := open(t, answering(t, 200,
		`{"errors":true,"items":[{"index":{"status":400,"error":{"type":"document_parsing_exception","reason":"`+long+`"}}}]}`))
	results, err := x.Write(t.Context(), batch(x, "a", put("v", 9, `{}`)))
	if err != nil {
		t.Fatal(err)
	}
	if got := results[0].Reason; len(got) > 5000 || !strings.HasPrefix(long, strings.TrimSuffix(got, "…")) {
		t.Errorf("the reason has %d bytes", len(got))
	}
}

// TestUnknownErrorsAreVisible also holds that nothing of the document reaches the log.
func TestUnknownErrorsAreVisible(t *testing.T) {
	var log logged
	now := time.Unix(1_800_000_000, 0)
	item := `{"index":{"status":400,"error":{"type":"brand_new_exception","reason":"secret"}}}`
	url := answering(t, 200, `{"errors":true,"items":[`+item+`,`+item+`]}`)
	x := open(t, url, func(c *elastic.Config) { c.Logger, c.Now = log.logger(), func() time.Time { return now } })
	write := func() {
		if _, err := x.Write(t.Context(), batch(x, "a", put("secret", 1, `{"a":"secret"}`), put("b", 1, `{}`))); err != nil {
			t.Fatal(err)
		}
	}
	for _, after := range []struct {
		pause time.Duration
		lines int
	}{{0, 1}, {59 * time.Second, 1}, {time.Second, 2}} {
		now = now.Add(after.pause)
		write()
		if got := strings.Count(log.String(), "error_type=brand_new_exception"); got != after.lines {
			t.Errorf("%d lines, want %d", got, after.lines)
		}
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log quotes the document: %s", log.String())
	}
}

// TestWholeRequests is the truth table of answers that are about the request as a whole.
func TestWholeRequests(t *testing.T) {
	fault := func(kind string) string { return `{"error":{"type":"` + kind + `","reason":"why"},"status":1}` }
	tests := []struct {
		name    string
		status  int
		body    string
		code    core.Code
		message string
		cause   string
	}{
		{"overloaded", 429, fault("es_rejected_execution_exception"), core.CodeOverloaded, "the index is overloaded", "why"},
		{"unavailable", 503, fault("cluster_block_exception"), core.CodeOverloaded, "the index is blocked", "why"},
		{"proxy without a node", 503, "<html>", core.CodeOverloaded, "the index is overloaded", "status 503"},
		{"too large", 413, "", core.CodeTooLarge, "the request is too large for the index", "status 413"},
		{
			"id too long", 400, fault("action_request_validation_exception"), core.CodeInvalid,
			"the index rejected the request", "status 400, action_request_validation_exception: why",
		},
		{"a proxy's 400", 400, "<html>", core.CodeUnavailable, "the index returned an unexpected response", "status 400"},
		{"no credentials", 401, fault("security_exception"), core.CodeIndexBlocked, "the index rejected the credentials", "why"},
		{"no new indices", 403, fault("index_create_block_exception"), core.CodeIndexBlocked, "the index engine allows no new indices", "why"},
		{"a proxy's 403", 403, "<html>", core.CodeIndexBlocked, "the index rejected the credentials", "status 403"},
		{"a missing index", 404, fault("index_not_found_exception"), core.CodeIndexBlocked, "the index is missing", "why"},
		{"a proxy's 404", 404, "<html>", core.CodeUnavailable, "the index returned an unexpected response", "status 404"},
		{"internal error", 500, fault("null_pointer_exception"), core.CodeUnavailable, "the index returned an unexpected response", "why"},
		{"a bad gateway", 502, "", core.CodeUnavailable, "the index returned an unexpected response", "status 502"},
		{"a redirect", 302, "", core.CodeUnavailable, "the index returned an unexpected response", "status 302"},
		{"not JSON", 200, "<html>", core.CodeUnavailable, "the bulk response of the index cannot be parsed", ""},
		{"empty", 200, "", core.CodeUnavailable, "the bulk response of the index cannot be parsed", ""},
		{
			"truncated JSON", 200, `{"errors":false,"items":[{"index":{"status":201}},{"delete":{"sta`, core.CodeUnavailable,
			"the bulk response of the index cannot be parsed", "",
		},
		{
			"truncated after an item", 200, `{"errors":false,"items":[{"index":{"status":201}},{"delete":{"status":200}}`,
			core.CodeUnavailable, "the bulk response of the index cannot be parsed", "",
		},
		{
			"an item short", 200, `{"errors":false,"items":[{"index":{"status":201}}]}`, core.CodeUnavailable,
			"the bulk response of the index is incomplete", "",
		},
		{
			"an item more", 200, `{"errors":false,"items":[{"index":{"status":201}},{"delete":{"status":200}},{"index":{"status":201}}]}`,
			core.CodeUnavailable, "the bulk response of the index is incomplete", "",
		},
		{
			"items of another request", 200, `{"errors":false,"items":[{"delete":{"status":200}},{"index":{"status":201}}]}`,
			core.CodeUnavailable, "the bulk response of the index does not match the request", "",
		},
		{
			"items without a status", 200, `{"errors":false,"items":[{"index":{}},{"delete":{}}]}`, core.CodeUnavailable,
			"the bulk response of the index does not match the request", "",
		},
		{"null", 200, `null`, core.CodeUnavailable, "the bulk response of the index is incomplete", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := open(t, answering(t, tt.status, tt.body, "Retry-After", "7"))
			results, err := x.Write(t.Context(), batch(x, "a", put("v", 9, `{}`), remove("w", 9)))
			if results != nil {
				t.Errorf("results %v beside an error", results)
			}
			wantError(t, err, tt.code, tt.message)
			if !strings.Contains(err.Error(), tt.cause) {
				t.Errorf("%q does not hold the cause %q", err, tt.cause)
			}
			want := 7 * time.Second
			if tt.status == http.StatusOK {
				want = 0
			}
			if got := core.RetryAfterOf(err); got != want {
				t.Errorf("retry after %s, want %s", got, want)
			}
		})
	}
}

// TestSuccessInAnyForm reads answers that a proxy or another release wrote in another way.
func TestSuccessInAnyForm(t *testing.T) {
	for _, body := range []string{
		`{"errors":false,"items":[{"index":{"status":201}},{"delete":{"status":404}}]}`,
		`{"errors":false,"items":[{"index":{"status":200}},{"delete":{"status":200}}]}` + "\n",
		`{ "items": [ {"index": {"status": 201}}, {"delete": {"status": 404}} ], "errors": false }`,
		`{"took":3,"errors":false,"items":[{"index":{"_id":"v","result":"created","status":201}},{"delete":{"status":200}}]}`,
	} {
		x := open(t, answering(t, 200, body))
		results, err := x.Write(t.Context(), batch(x, "a", put("v", 9, `{}`), remove("w", 9)))
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		want := []core.Result{{Outcome: core.OutcomeIndexed}, {Outcome: core.OutcomeRemoved}}
		if diff := cmp.Diff(want, results); diff != "" {
			t.Errorf("%s: %s", body, diff)
		}
	}
}

// FuzzAnswer holds that no answer makes Write panic, and that success is never read out of one that does not say so.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"errors":false,"items":[{"index":{"status":201}},{"delete":{"status":404}}]}`))
	f.Add([]byte(`{"errors":true,"items":[{"index":{"status":409,"error":{"type":"version_conflict_engine_exception","reason":"current version [1]"}}},{"delete":{"status":200}}]}`))
	f.Add([]byte(`{"errors":false,"items":[{"index":{"status":20`))
	var answer []byte
	x := open(f, serving(f, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) }))
	b := batch(x, "a", put("v", 9, `{}`), remove("w", 9))
	f.Fuzz(func(t *testing.T, body []byte) {
		answer = body
		results, err := x.Write(t.Context(), b)
		if err != nil {
			if core.CodeOf(err) != core.CodeUnavailable {
				t.Fatalf("got %v", err)
			}
			return
		}
		if len(results) != 2 {
			t.Fatalf("%d results", len(results))
		}
		for i, word := range []string{"index", "delete"} {
			done := results[i].Outcome == core.OutcomeIndexed || results[i].Outcome == core.OutcomeRemoved
			if done && !strings.Contains(strings.ToLower(string(body)), word) && !strings.Contains(string(body), `\u`) {
				t.Fatalf("read %v out of %q", results[i], body)
			}
		}
	})
}
