//go:build services

package elastic_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/elastic"
	"tutti/internal/index/elastic/flavour"
	"tutti/internal/index/mapping"
	"tutti/internal/tools/indextest"
	"tutti/internal/tools/testkit"
)

// asTutti opens an engine as the user of a secure node who has only the rights that deploy/docs/engines.md grants.
func asTutti(t *testing.T, node map[string]string) *elastic.Index { return asUser(t, node, "tutti") }

func asUser(t *testing.T, node map[string]string, user string) *elastic.Index {
	t.Helper()
	return open(t, node["URL"], func(c *elastic.Config) {
		c.TLS.CAFile, c.Username, c.Password, c.Timeout = node["CA"], user, node["PASSWORD"], 30*time.Second
	})
}

// asAdmin sends a request to a secure node as its administrator.
func asAdmin(t *testing.T, node map[string]string, method, path, body string) {
	t.Helper()
	pem, err := os.ReadFile(node["CA"])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	ctx, cancel := context.WithTimeout(context.Background(), testkit.HangLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, node["URL"]+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(node["ADMIN"], node["PASSWORD"])
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if answer, err := io.ReadAll(res.Body); err != nil || res.StatusCode/100 != 2 {
		t.Fatalf("%s %s: status %d, %s, %v", method, path, res.StatusCode, answer, err)
	}
}

// testRights does everything that tutti does with an index as a user who has only the documented rights, and checks what such a user is told
// of an index without rights.
func testRights(t *testing.T, node map[string]string) {
	x := asTutti(t, node)
	alias := "tutti-indextest-" + uuid.NewString()
	spec := index.Spec{Alias: alias, Known: mapping.Song()}
	next := index.Spec{Alias: core.NextAlias(alias), Replaces: alias, Known: mapping.Song()}
	do := func(doing string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", doing, err)
		}
	}
	fill := func(alias string) {
		t.Helper()
		for _, r := range write(t, x, alias, put("a", 1, `{"studyId":"S","added":1}`), put("b", 1, `{"studyId":"T"}`)) {
			if r.Outcome != core.OutcomeIndexed {
				t.Fatalf("got %+v", r)
			}
		}
	}
	do("ping", x.Ping(t.Context()))
	for range 2 { // the second one adds fields
		do("ensure", x.Ensure(t.Context(), spec))
		fill(alias)
	}
	do("check", x.Check(t.Context(), alias))
	do("refresh", x.Refresh(t.Context(), alias))
	if n, err := x.Count(t.Context(), alias, core.IndexScope{Field: "studyId", Organization: "S"}); n != 1 || err != nil {
		t.Fatalf("counted %d, %v", n, err)
	}
	wantDocument(t, x, alias, "a", `{"studyId":"S","added":1}`)
	do("scan", x.Scan(t.Context(), alias, core.IndexScope{}, 0, func(string, core.Version) error { return nil }))
	_, err := x.Search(t.Context(), alias, []index.SearchRequest{{}, {}})
	do("search", err)
	do("stream", x.Stream(t.Context(), alias, index.StreamRequest{}, func([]index.Hit) error { return nil }))
	checkpoint, err := x.Checkpoint(t.Context(), alias)
	do("checkpoint", err)
	identity, err := x.Identity(t.Context(), alias)
	do("identity", err)
	if checkpoint == "" || identity == "" {
		t.Errorf("checkpoint %q, identity %q", checkpoint, identity)
	}
	_, err = x.Limits(t.Context(), alias)
	do("limits", err)
	compared, err := x.Compare(t.Context(), spec)
	do("compare", err)
	if compared.Kind != index.NameAlias || !compared.Unasked {
		t.Errorf("compared: %+v", compared)
	}
	do("ensure the next", x.Ensure(t.Context(), next))
	fill(next.Alias)
	do("swap", x.Swap(t.Context(), spec, next.Alias, ""))
	do("drop", x.Drop(t.Context(), core.PreviousAlias(alias), identity))
	asAdmin(t, node, http.MethodPut, "/"+alias+"-made", `{"settings":{"number_of_replicas":0}}`)
	_, _, err = x.Adopt(t.Context(), alias+"-made")
	do("adopt", err)
	do("check what was adopted", x.Check(t.Context(), alias+"-made"))

	testNoRights(t, node, x)
	testReadRights(t, node)
}

// testReadRights does what a catalogue does with an index that no repository writes.
func testReadRights(t *testing.T, node map[string]string) {
	name := "tutti-catalogue-" + uuid.NewString()
	asAdmin(t, node, http.MethodPut, "/"+name, `{"settings":{"number_of_replicas":0},"mappings":{"properties":{"k":{"type":"keyword"}}}}`)
	asAdmin(t, node, http.MethodPut, "/"+name+"/_doc/1?refresh=true", `{"k":"v"}`)
	x := asUser(t, node, "tutti-plan")
	for doing, err := range map[string]error{
		"mapping":  func() error { _, err := x.Mapping(t.Context(), name); return err }(),
		"identity": func() error { _, err := x.Identity(t.Context(), name); return err }(),
		"limits":   func() error { _, err := x.Limits(t.Context(), name); return err }(),
		"search":   func() error { _, err := x.Search(t.Context(), name, []index.SearchRequest{{}, {}}); return err }(),
		"count":    func() error { _, err := x.Count(t.Context(), name, core.IndexScope{}); return err }(),
		"stream":   x.Stream(t.Context(), name, index.StreamRequest{}, func([]index.Hit) error { return nil }),
	} {
		if err != nil {
			t.Errorf("%s: %v", doing, err)
		}
	}
	x = asTutti(t, node)
	if _, err := x.Mapping(t.Context(), name); core.CodeOf(err) != core.CodeIndexBlocked {
		t.Errorf("a mapping without rights: %v", err)
	}
}

// testNoRights checks what a user is told of an index on which it has no rights, while it has all of them on others.
func testNoRights(t *testing.T, node map[string]string, x *elastic.Index) {
	foreign := "foreign-" + uuid.NewString()
	product := flavour.Elasticsearch
	if node["ADMIN"] == "admin" {
		product = flavour.OpenSearch
	}
	engine, _, _ := flavour.Of(product, flavour.Version{})
	unprivileged := func(doing, action string, err error) {
		t.Helper()
		want := "the user of the index lacks a privilege: the engine refuses " + action
		if core.CodeOf(err) != core.CodeIndexBlocked || !strings.HasPrefix(core.MessageOf(err), want) ||
			core.HintOf(err) != engine.Privileges.Hint("each indexName and indexName-*") {
			t.Errorf("%s: got %s %q (%q), want %q: %v", doing, core.CodeOf(err), core.MessageOf(err), core.HintOf(err), want, err)
		}
	}
	unprivileged("ensure", "indices:admin/aliases/get", x.Ensure(t.Context(), index.Spec{Alias: foreign, Known: mapping.Song()}))
	asAdmin(t, node, http.MethodPut, "/"+foreign+"-1", fmt.Sprintf(`{"aliases":{%q:{}},"settings":{"number_of_replicas":0}}`, foreign))
	for _, r := range write(t, x, foreign, put("a", 1, `{}`), remove("b", 1)) {
		if r.Outcome != core.OutcomeRetry || r.Code != core.CodeIndexBlocked {
			t.Errorf("got %+v", r)
		}
	}
	unprivileged("check", "indices:data/write/bulk[s]", x.Check(t.Context(), foreign))
	unprivileged("refresh", "indices:admin/refresh", x.Refresh(t.Context(), foreign))
}

// TestConformanceSecure runs the suite as a user who has only the documented rights, and the one to have mapping files rendered.
func TestConformanceSecure(t *testing.T) {
	node := secureNode(t)
	dialect := indextest.Dialect{}
	if node["ADMIN"] == "admin" {
		dialect = openSearchDialect()
	}
	indextest.Run(t, func(t *testing.T) index.Index { return asUser(t, node, "tutti-plan") }, dialect)
}
