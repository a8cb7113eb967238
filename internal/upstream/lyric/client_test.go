package lyric_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
	"tutti/internal/tools/testkit/dataset"
	"tutti/internal/upstream"
	"tutti/internal/upstream/lyric"
)

// port is what consumers need of a tabular repository.
type port interface {
	Organizations(ctx context.Context) ([]string, error)
	Page(ctx context.Context, organization string, offset, limit int, each func(core.Record) error) (core.PageInfo, error)
	Record(ctx context.Context, organization, id string) (core.Record, error)
}

var _ port = (*lyric.Client)(nil)

func serve(t testing.TB, cfg testkit.LyricConfig) *testkit.LyricServer {
	t.Helper()
	server, err := testkit.NewLyric(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server
}

// client returns a client of the server's category, unless cfg names another.
func client(t testing.TB, server *testkit.LyricServer, cfg lyric.Config) *lyric.Client {
	t.Helper()
	cfg.URL = server.URL()
	if cfg.CategoryID == "" {
		cfg.CategoryID = server.CategoryID()
	}
	c, err := lyric.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func envelope(id, organization string, valid bool) string {
	return fmt.Sprintf(`{"data":{"isValid":"no","name":"n"},"entityName":"donor","isValid":%v,"organization":%q,"systemId":%q}`,
		valid, organization, id)
}

func put(t testing.TB, server *testkit.LyricServer, organization, id string, valid bool) string {
	t.Helper()
	body := envelope(id, organization, valid)
	if err := server.Put(organization, []byte(body)); err != nil {
		t.Fatal(err)
	}
	return body
}

// read collects a page; the bodies are copied.
func read(t testing.TB, c *lyric.Client, organization string, offset, limit int) ([]core.Record, core.PageInfo, error) {
	t.Helper()
	var records []core.Record
	info, err := c.Page(t.Context(), organization, offset, limit, func(r core.Record) error {
		r.Body = slices.Clone(r.Body)
		records = append(records, r)
		return nil
	})
	return records, info, err
}

// wantError checks the code and message of an error.
func wantError(t *testing.T, what string, err error, code core.Code, message string) {
	t.Helper()
	if err == nil || core.CodeOf(err) != code || core.MessageOf(err) != message {
		t.Errorf("%s: code %q, message %q (%v), want %q, %q", what, core.CodeOf(err), core.MessageOf(err), err, code, message)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cfg     lyric.Config
		message string
	}{
		"no url":        {lyric.Config{CategoryID: "1"}, "the repository's url must start with http:// or https:// and a host"},
		"no category":   {lyric.Config{Config: upstream.Config{URL: "http://h"}}, "the category's id is empty"},
		"category path": {lyric.Config{Config: upstream.Config{URL: "http://h"}, CategoryID: ".."}, "the category's id must not be a relative path segment"},
		"record size":   {lyric.Config{Config: upstream.Config{URL: "http://h", MaxRecordBytes: -1}, CategoryID: "1"}, "the maximum size of a record must not be negative"},
		"two credentials": {
			lyric.Config{Config: upstream.Config{URL: "http://h", Token: "t", Username: "u"}, CategoryID: "1"}, "a repository takes a token or a username, not both",
		},
	} {
		_, err := lyric.New(tt.cfg)
		wantError(t, name, err, core.CodeInvalid, tt.message)
	}
}

func TestOrganizations(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.LyricConfig{Alias: "clinical"})
	c := client(t, server, lyric.Config{})
	if got, err := c.Organizations(t.Context()); err != nil || got == nil || len(got) != 0 {
		t.Errorf("no organizations: %v, %v", got, err)
	}
	server.AddOrganizations("O2", "O1", "é/ü")
	for name, category := range map[string]string{"by id": "", "by alias": "clinical"} {
		got, err := client(t, server, lyric.Config{CategoryID: category}).Organizations(t.Context())
		if d := cmp.Diff([]string{"O1", "O2", "é/ü"}, got); d != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, d)
		}
	}
	for _, bad := range []string{
		``, `null`, `[]`, `{}`, `{"id":1}`, `{"organizations":null}`, `{"organizations":["a"`, `{"organizations":[1]}`, `{"organizations":[null]}`, `<html>`,
	} {
		server.Fail(testkit.Fault{Status: http.StatusOK, ContentType: "application/json", Body: bad})
		_, err := c.Organizations(t.Context())
		wantError(t, bad, err, core.CodeUnavailable, "the upstream's category has an unexpected format")
		server.ClearFaults()
	}
}

// BenchmarkPage reads 5,000 records from a server in this process; ns/record includes the server's side.
func BenchmarkPage(b *testing.B) {
	server := serve(b, testkit.LyricConfig{})
	server.PutAll(dataset.GenerateRecords(1, "O1", 5000)...)
	c := client(b, server, lyric.Config{})
	b.ReportAllocs()
	for b.Loop() {
		for offset := 0; offset < 5000; offset += 500 {
			if _, err := c.Page(b.Context(), "O1", offset, 500, func(core.Record) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*5000), "ns/record")
}

func ExampleClient_Page() {
	server, err := testkit.NewLyric(testkit.LyricConfig{})
	if err != nil {
		panic(err)
	}
	defer server.Close()
	if err := server.Put("O1", []byte(envelope("A1", "O1", true))); err != nil {
		panic(err)
	}
	c, err := lyric.New(lyric.Config{Config: upstream.Config{URL: server.URL()}, CategoryID: server.CategoryID(), ValidOnly: true})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	info, err := c.Page(context.Background(), "O1", 0, 100, func(r core.Record) error {
		fmt.Println(r.ID, r.Organization, r.Indexable)
		return nil
	})
	fmt.Println(info.Rows, info.Total, err)
	// Output:
	// A1 O1 true
	// 1 1 <nil>
}
