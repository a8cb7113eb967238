package download_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tutti/internal/core"
	"tutti/internal/search/download"
	"tutti/internal/search/view"
)

// wantHint checks the hint of an error.
func wantHint(t *testing.T, err error, hint string) {
	t.Helper()
	if core.HintOf(err) != hint {
		t.Errorf("hint %q, want %q (%v)", core.HintOf(err), hint, err)
	}
}

// TestTooManyColumns: a catalogue with more columns than a download may have is downloaded by naming columns.
func TestTooManyColumns(t *testing.T) {
	w := newWorld(t, base+`}`, download.Config{MaxColumns: 1})
	wantHint(t, w.ask(t.Context(), `{}`), "name the columns that you need in columns")
	if err := w.ask(t.Context(), `{"columns":["analysisId"]}`); err != nil {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	t.Run("a catalogue that is not there", func(t *testing.T) {
		s, err := download.New(models{}, view.New(&engine{}, view.Config{}), download.Config{})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Download(t.Context(), "c", core.Principal{}, core.DownloadRequest{Params: []byte(`{}`)}, nil)
		wantError(t, err, core.CodeNotFound, "the catalogue is not available")
	})
	t.Run("downloads are disabled", func(t *testing.T) {
		w := newWorld(t, base+`,"disableDownloads":true}`, download.Config{})
		err := w.ask(t.Context(), `{`)
		wantError(t, err, core.CodeForbidden, "downloads are disabled for this catalogue")
		wantHint(t, err, "unset disableDownloads in the configuration of the catalogue to allow them")
		if err := newWorld(t, base+`}`, download.Config{}).ask(t.Context(), `{}`); err != nil {
			t.Error(err)
		}
	})
	t.Run("too many at once", func(t *testing.T) {
		w := newWorld(t, base+`}`, download.Config{MaxConcurrent: 1})
		var second error
		w.engine.before = func() {
			second = w.Download(t.Context(), "c", core.Principal{}, core.DownloadRequest{Params: []byte(`{}`)}, nil)
		}
		if err := w.ask(t.Context(), `{}`); err != nil {
			t.Error(err)
		}
		wantError(t, second, core.CodeOverloaded, "too many concurrent downloads")
		if core.RetryAfterOf(second) != 5*time.Second {
			t.Error(core.RetryAfterOf(second))
		}
		w.engine.before = nil
		if err := w.ask(t.Context(), `{}`); err != nil {
			t.Error(err)
		}
	})
	t.Run("a bad bound", func(t *testing.T) {
		_, err := download.New(nil, nil, download.Config{MaxColumns: -1})
		wantError(t, err, core.CodeInvalid, "a limit of downloads must not be negative")
	})
}

// TestFailures: an index error before the first bytes reaches the client; a content type that the client does not accept ends the
// download.
func TestFailures(t *testing.T) {
	down := core.NewError(core.CodeUnavailable, "the index does not answer")
	t.Run("the index at once", func(t *testing.T) {
		for _, params := range []string{`{}`, `{"format":"json"}`, `{"files":[{},{}]}`} {
			w := newWorld(t, base+`}`, download.Config{SpoolDir: t.TempDir()})
			w.engine.failing = down
			wantError(t, w.ask(t.Context(), params), core.CodeUnavailable, "the index does not answer")
			if w.head != nil {
				t.Error(params, "has begun")
			}
		}
	})
	t.Run("the index later", func(t *testing.T) {
		w := newWorld(t, base+`}`, download.Config{})
		w.engine.docs = [][]byte{[]byte(`{"tags":"` + strings.Repeat("x", 40<<10) + `"}`), []byte(`{}`), []byte(`{}`)}
		w.engine.failing, w.engine.failAfter = down, 2
		wantError(t, w.ask(t.Context(), `{"columns":["tags"]}`), core.CodeUnavailable, "the index does not answer")
		if w.head == nil || w.file.Len() < 40<<10 {
			t.Error("nothing was written")
		}
	})
	t.Run("the client", func(t *testing.T) {
		w := newWorld(t, base+`}`, download.Config{})
		refused := core.NewError(core.CodeInvalid, "not accepted")
		for _, begin := range []core.BeginDownload{
			func(core.DownloadHead) (io.Writer, error) { return nil, refused },
			func(core.DownloadHead) (io.Writer, error) { return failing{refused}, nil },
		} {
			for _, params := range []string{`{}`, `{"files":[{},{}]}`} {
				err := w.Download(t.Context(), "c", core.Principal{}, core.DownloadRequest{Params: []byte(params)}, begin)
				wantError(t, err, core.CodeInvalid, "not accepted")
			}
		}
	})
	t.Run("the end of the request", func(t *testing.T) {
		w := newWorld(t, base+`}`, download.Config{})
		ctx, end := context.WithCancel(t.Context())
		w.engine.before = end
		err := w.ask(ctx, `{}`)
		wantError(t, err, core.CodeUnavailable, "writing a download: the client disconnected, or the server is stopping")
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// entry is a file of an archive.
type entry struct{ Name, Text string }

func unpacked(t *testing.T, archive []byte) []entry {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	var all []entry
	for r := tar.NewReader(z); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, entry{head.Name, string(text)})
	}
	if rest, err := io.ReadAll(z); err != nil || len(bytes.Trim(rest, "\x00")) > 0 {
		t.Errorf("behind the archive: %q, %v", rest, err)
	}
	return all
}

func TestArchive(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, base+`}`, download.Config{SpoolDir: dir})
	long := strings.Repeat("é", 150) + ".csv"
	err := w.ask(t.Context(), `{"fileName":"all.tar","fileType":"csv","files":[
		{"fileName":"a.tsv","fileType":"tsv","columns":["analysisId"]}, {"columns":["count"],"maxRows":0}, {"fileName":"A.TSV","columns":["_id"]},
		{"fileName":"../../etc/passwd","columns":["open"]}, {"fileName":"none.csv","columns":["tags"],"sqon":{}}, {"fileName":"`+long+`","columns":["_id"]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if want := (core.DownloadHead{ContentType: "application/gzip", FileName: "all.tar.gz"}); *w.head != want {
		t.Errorf("got %+v", *w.head)
	}
	got := unpacked(t, w.file.Bytes())
	ids := "A1\r\nA2\r\nA3\r\nA4\r\n"
	want := []entry{
		{"a.tsv", "Analysis Id\nA1\nA2\nA3\nA4\n"},
		{"file-2.csv", "Count\r\n3\r\n0\r\n--\r\n--\r\n"},
		{"A-2.TSV", "_id\r\n" + ids},
		{"_.._etc_passwd.csv", "Open\r\ntrue\r\nfalse\r\n--\r\n--\r\n"},
		{"none.csv", "Tags\r\n\"x, y\"\r\n--\r\n\"'=a, b\"\r\nsingle\r\n"},
		{strings.Repeat("é", 98) + ".csv", "_id\r\n" + ids},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	wantEmpty(t, dir)

	t.Run("of one file, for who accepts nothing else", func(t *testing.T) {
		if err := w.accept(t.Context(), `{"columns":["analysisId"]}`, core.MediaArchive); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]entry{{"file-1.tsv", "Analysis Id\nA1\nA2\nA3\nA4\n"}}, unpacked(t, w.file.Bytes())); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("too large", func(t *testing.T) {
		w := newWorld(t, base+`}`, download.Config{SpoolDir: dir, MaxSpoolBytes: 10})
		err := w.ask(t.Context(), `{"files":[{"fileName":"a"},{}]}`)
		wantError(t, err, core.CodeTooLarge, `the file "a" is too large for an archive`)
		wantHint(t, err, "download this file separately")
		if err := w.ask(t.Context(), `{"files":[{"fileName":"a"}]}`); err != nil {
			t.Errorf("separately: %v", err)
		}
		wantEmpty(t, dir)
	})
	t.Run("without a folder", func(t *testing.T) {
		w := newWorld(t, base+`}`, download.Config{SpoolDir: dir + "/none"})
		wantError(t, w.ask(t.Context(), `{"files":[{},{}]}`), core.CodeUnavailable, "writing a file of an archive to disk")
	})
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ name, params, accept, want string }{
		{"none", `{}`, "", "analysis.tsv"},
		{"none, and another type is accepted", `{}`, core.MediaCSV, "analysis.csv"},
		{"lines are accepted", `{}`, core.MediaJSONLines, "analysis.jsonl"},
		{"JSON is accepted", `{}`, core.MediaJSON, "analysis.json"},
		{"what is accepted is not asked", `{"format":"tsv"}`, core.MediaCSV, "analysis.tsv"},
		{"nor is an archive", `{"format":"tsv"}`, core.MediaArchive, "analysis.tsv"},
		{"an archive is accepted", `{"fileName":"x"}`, core.MediaArchive, "x.tar.gz"},
		{"without an extension", `{"fileName":"donors","format":"CSV"}`, "", "donors.csv"},
		{"with another extension", `{"fileName":"donors.txt"}`, "", "donors.txt"},
		{"of the only file", `{"fileName":"a","files":[{"fileName":"b"}]}`, "", "b.tsv"},
		{"of a download with one file", `{"fileName":"a","files":[{}]}`, "", "a.tsv"},
		{"of a download with several", `{"fileName":"a.tgz","files":[{"fileName":"b"},{}]}`, "", "a.tar.gz"},
		{"of none with several", `{"files":[{"fileName":"b"},{}]}`, "", "analysis.tar.gz"},
		{"of an extension alone", `{"fileName":".tar","files":[{},{}]}`, "", ".tar.tar.gz"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, base+`}`, download.Config{SpoolDir: t.TempDir()})
			if err := w.accept(t.Context(), c.params, c.accept); err != nil {
				t.Fatal(err)
			}
			if w.head.FileName != c.want {
				t.Errorf("got %q, want %q", w.head.FileName, c.want)
			}
		})
	}
}

func TestMetrics(t *testing.T) {
	reg := prometheus.NewRegistry()
	w := newWorld(t, base+`}`, download.Config{Metrics: download.NewMetrics(reg), SpoolDir: t.TempDir()})
	for _, params := range []string{`{}`, `{"format":"csv","maxRows":3}`, `{`, `{"columns":["nope"]}`, `{"files":[{},{}]}`} {
		_ = w.ask(t.Context(), params) // some are at fault
	}
	w.engine.docs = [][]byte{[]byte(`{"tags":"` + strings.Repeat("x", 40<<10) + `"}`), []byte(`{}`), []byte(`{}`)}
	w.engine.failing, w.engine.failAfter = core.NewError(core.CodeUnavailable, "down"), 2
	_ = w.ask(t.Context(), `{"format":"jsonl"}`)
	const want = `# HELP tutti_download_rows_total Rows that were written to downloads.
# TYPE tutti_download_rows_total counter
tutti_download_rows_total{format="csv"} 3
tutti_download_rows_total{format="jsonl"} 2
tutti_download_rows_total{format="tsv"} 12
# HELP tutti_downloads_total Downloads that have ended, by how.
# TYPE tutti_downloads_total counter
tutti_downloads_total{format="archive",outcome="complete"} 1
tutti_downloads_total{format="csv",outcome="complete"} 1
tutti_downloads_total{format="jsonl",outcome="cut"} 1
tutti_downloads_total{format="tsv",outcome="complete"} 1
tutti_downloads_total{format="tsv",outcome="refused"} 1
tutti_downloads_total{format="unknown",outcome="refused"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "tutti_downloads_total", "tutti_download_rows_total"); err != nil {
		t.Error(err)
	}
}
