package search_test

import (
	"mime"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"tutti/http/api"
	"tutti/internal/core"
	"tutti/internal/tools/apitest"
)

// disposer returns what downloads a file of a name and returns the header that names it.
func disposer(tb testing.TB) func(t *testing.T, name string) string {
	tb.Helper()
	p := apitest.Working()
	p.Catalogues.Put(apitest.Plain("C"))
	h := apitest.NewHandler(tb, p, api.Config{})
	return func(t *testing.T, name string) string {
		t.Helper()
		p.Searches.DownloadFn = apitest.Writing(core.DownloadHead{ContentType: core.MediaTSV, FileName: name}, nil, "x")
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/download", strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Fatalf("%q: got %d %s", name, w.Code, w.Body)
		}
		return w.Header().Get("Content-Disposition")
	}
}

// TestDownloadFileNames: what a file cannot be called, or should not, is taken out of its name.
func TestDownloadFileNames(t *testing.T) {
	disposed := disposer(t)
	for name, want := range map[string]string{
		"participants.tsv":                   `attachment; filename="participants.tsv"`,
		"my file (1), [2]; a=b&c":            `attachment; filename="my file (1), [2]; a=b&c"`,
		"":                                   `attachment; filename="download"`,
		"..":                                 `attachment; filename="download"`,
		" . .":                               `attachment; filename="download"`,
		".bashrc":                            `attachment; filename="bashrc"`,
		"a.tsv. ":                            `attachment; filename="a.tsv"`,
		"../../etc/passwd":                   `attachment; filename="_.._etc_passwd"`,
		`C:\a\b.tsv`:                         `attachment; filename="C__a_b.tsv"`,
		`a"; filename="b.exe`:                `attachment; filename="a_; filename=_b.exe"`,
		"a\r\nSet-Cookie: x=y":               `attachment; filename="aSet-Cookie_ x=y"`,
		"a\x00b\x7fc\u0085d":                 `attachment; filename="abcd"`,
		"a\u202egpj.exe":                     `attachment; filename="agpj.exe"`,
		"a\u2028b\ufeffc\u200bd":             `attachment; filename="abcd"`,
		"a\xffb":                             `attachment; filename="ab"`,
		"a\u00a0b\tc.tsv":                    `attachment; filename="a bc.tsv"`,
		"données.tsv":                        `attachment; filename="donn_es.tsv"; filename*=UTF-8''donn%C3%A9es.tsv`,
		"患者 1.tsv":                           `attachment; filename="__ 1.tsv"; filename*=UTF-8''%E6%82%A3%E8%80%85%201.tsv`,
		"100%25.tsv":                         `attachment; filename="100_25.tsv"; filename*=UTF-8''100%2525.tsv`,
		"é'()*!~.tsv":                        `attachment; filename="_'()_!~.tsv"; filename*=UTF-8''%C3%A9%27%28%29_%21~.tsv`,
		strings.Repeat("x", 300):             `attachment; filename="` + strings.Repeat("x", 200) + `"`,
		strings.Repeat("x", 300) + ".tar.gz": `attachment; filename="` + strings.Repeat("x", 197) + `.gz"`,
		strings.Repeat("x", 198) + "..tsv":   `attachment; filename="` + strings.Repeat("x", 196) + `.tsv"`,
		"a." + strings.Repeat("x", 300):      `attachment; filename="a.` + strings.Repeat("x", 198) + `"`,
		strings.Repeat("x", 195) + "é" + "x" + ".tsv": `attachment; filename="` + strings.Repeat("x", 195) + `.tsv"`,
	} {
		t.Run(name, func(t *testing.T) {
			if got := disposed(t, name); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// FuzzDownloadFileName: any name returns a header that is one, whose name is a file's and nothing else.
func FuzzDownloadFileName(f *testing.F) {
	for _, name := range []string{"", "a.tsv", "données", "a\"b\\c", "%41", "\xff", "../x", "a\r\nb", strings.Repeat("é", 200), "x.\u202etsv"} {
		f.Add(name)
	}
	disposed := disposer(f)
	f.Fuzz(func(t *testing.T, name string) {
		header := disposed(t, name)
		kind, params, err := mime.ParseMediaType(header)
		if err != nil || kind != "attachment" || len(params) != 1 {
			t.Fatalf("%q: %s: %v", name, header, err)
		}
		got := params["filename"]
		if got == "" || len(got) > 200 || !utf8.ValidString(got) || strings.ContainsAny(got, "/\\:*?\"<>|\x7f") ||
			strings.HasPrefix(got, ".") || strings.HasSuffix(got, ".") || strings.ContainsFunc(got, unicode.IsControl) {
			t.Fatalf("%q is called %q", name, got)
		}
		if again := disposed(t, got); again != header {
			t.Fatalf("%q: %s, and once more %s", name, header, again)
		}
		for _, c := range header {
			if c < ' ' || c > '~' {
				t.Fatalf("%q: %q", name, header)
			}
		}
	})
}
