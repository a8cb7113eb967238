package search_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

// TestIntrospectionValues: values come from the caller's own documents, only if asked for, and a failure is a note in the response.
func TestIntrospectionValues(t *testing.T) {
	type call struct {
		id   string
		who  core.Principal
		most int
	}
	var calls []call
	p := apitest.Working()
	p.Catalogues.Put(apitest.Participants())
	var failure error
	p.Searches.ValuesFn = func(id string, who core.Principal, fields []string, most int) (map[string]core.FieldValues, error) {
		calls = append(calls, call{id, who, most})
		if fields != nil {
			t.Errorf("only %v are counted", fields)
		}
		return map[string]core.FieldValues{
			"participant_id":   {Values: []core.FieldValue{{Value: "P<1>", Count: 2}}, Note: "values longer than 1000 bytes are left out: 1"},
			"age_at_diagnosis": {Min: 1.5, Max: 90.0},
			"diagnosis_date":   {Min: "2020-01-02T00:00:00.000Z", Max: "2021-01-02T00:00:00.000Z"},
			"samples.type":     {Values: []core.FieldValue{}},
			"samples.weight":   {Note: "not counted"},
		}, failure
	}
	h := apitest.NewHandler(t, p, api.Config{})
	for _, target := range []string{"/introspection/participants", "/introspection/fields", "/participants/introspection"} {
		if body := apitest.Introspect(t, h, target, 200); strings.Contains(string(body), `"values"`) || len(calls) > 0 {
			t.Fatalf("%s counts without being asked: %v, %s", target, calls, body)
		}
		body := string(apitest.Introspect(t, h, target+"?values=20", 200))
		if len(calls) != 1 || calls[0].id != "participants" || calls[0].most != 20 {
			t.Fatalf("%s: calls %+v", target, calls)
		}
		calls = nil
		for _, part := range []string{
			`"values":[{"value":"P<1>","count":2}],"valuesNote":"values longer than 1000 bytes are left out: 1"`, `"min":1.5,"max":90}`,
			`"min":"2020-01-02T00:00:00.000Z","max":"2021-01-02T00:00:00.000Z"}`, `"multiValued":true,"values":[]}`, `"unit":"µg","valuesNote":"not counted"}`,
		} {
			if !strings.Contains(body, part) {
				t.Errorf("%s lacks %s: %s", target, part, body)
			}
		}
	}
	for _, wrong := range []string{"0", "101", "x", "", "1&values=2", "-1"} {
		res, body := apitest.Do(t, h, apitest.Ask{Method: "GET", Target: "/introspection/participants?values=" + wrong})
		if res.StatusCode != 400 || !strings.Contains(string(body), "values") || len(calls) > 0 {
			t.Errorf("values=%s: %d %s", wrong, res.StatusCode, body)
		}
	}
	failure = &core.Error{Code: core.CodeUnavailable, Message: "the engine does not answer", Err: fmt.Errorf("secret")}
	body := string(apitest.Introspect(t, h, "/introspection/participants?values=1", 200))
	if !strings.Contains(body, `"meta":{"authFiltered":false,"valuesNote":"not counted: the engine does not answer"},"operators"`) || strings.Contains(body, "secret") {
		t.Errorf("%s", body)
	}
}

// TestIntrospectionTagOfValues: the entity tag covers the values and the time of the last write, but not the time of the response.
func TestIntrospectionTagOfValues(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	p := apitest.Working()
	c := apitest.Participants()
	c.DataRelease = "DR-42"
	p.Catalogues.Put(c)
	count := int64(1)
	p.Searches.ValuesFn = func(string, core.Principal, []string, int) (map[string]core.FieldValues, error) {
		return map[string]core.FieldValues{"participant_id": {Values: []core.FieldValue{{Value: "a", Count: count}}}}, nil
	}
	h := apitest.NewHandler(t, p, api.Config{Now: func() time.Time { return now }})
	const plain, counted = "/introspection/participants", "/introspection/participants?values=5"
	tag := func(target, known string, status int) string {
		t.Helper()
		a := apitest.Ask{Method: "GET", Target: target}
		if known != "" {
			a.Header = http.Header{"If-None-Match": {known}}
		}
		res, body := apitest.Do(t, h, a)
		if res.StatusCode != status {
			t.Fatalf("%s with %q: %d %s", target, known, res.StatusCode, body)
		}
		return res.Header.Get("ETag")
	}
	if body := string(apitest.Introspect(t, h, plain, 200)); !strings.Contains(body, `"documentType":"participant","dataRelease":"DR-42","generatedAt":"2026-05-04T12:00:00.000Z","meta"`) {
		t.Errorf("%s", body)
	}
	first, firstCounted := tag(plain, "", 200), tag(counted, "", 200)
	now = now.Add(time.Hour)
	tag(plain, first, 304)
	tag(counted, firstCounted, 304)
	tag(counted, first, 200)
	count++
	tag(plain, first, 304)
	secondCounted := tag(counted, firstCounted, 200)
	p.Searches.Indexed = now
	second := tag(plain, first, 200)
	tag(counted, secondCounted, 200)
	if body := string(apitest.Introspect(t, h, plain, 200)); !strings.Contains(body, `"generatedAt":"2026-05-04T13:00:00.000Z","dataIndexedAt":"2026-05-04T13:00:00.000Z","meta":{"authFiltered":false}`) {
		t.Errorf("%s", body)
	}
	now = now.Add(time.Hour)
	tag(plain, second, 304)
}
