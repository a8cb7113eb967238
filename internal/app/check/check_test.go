package check_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"tutti/internal/app/check"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parse(t *testing.T, file string, environ ...string) config.Config {
	t.Helper()
	cfg, err := config.Parse([]byte(file), environ)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func song(t *testing.T, cfg testkit.SongConfig, studies ...string) *testkit.SongServer {
	t.Helper()
	s, err := testkit.NewSong(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for _, study := range studies {
		s.AddStudy(study)
	}
	return s
}

// of returns the findings of a subject, each as "status: message -> hint".
func of(r check.Report, subject string) []string {
	var lines []string
	for _, f := range r.Findings {
		if f.Subject != subject {
			continue
		}
		line := string(f.Status) + ": " + f.Message
		if f.Hint != "" {
			line += " -> " + f.Hint
		}
		lines = append(lines, line)
	}
	return lines
}

// wantLines holds lines against patterns in which * stands for anything.
func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	ok := len(got) == len(want)
	for i := 0; ok && i < len(got); i++ {
		ok = matches(got[i], want[i])
	}
	if !ok {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if strings.Contains(strings.Join(got, ""), "s3cret") {
		t.Errorf("a secret is shown: %v", got)
	}
}

func matches(s, pattern string) bool {
	parts := strings.Split(pattern, "*")
	s, ok := strings.CutPrefix(s, parts[0])
	for _, part := range parts[1:] {
		if !ok {
			return false
		}
		if part == parts[len(parts)-1] {
			return strings.HasSuffix(s, part)
		}
		_, s, ok = strings.Cut(s, part)
	}
	return ok && (len(parts) > 1 || s == "")
}

func TestEverythingEmbedded(t *testing.T) {
	upstream := song(t, testkit.SongConfig{}, "S1", "S2")
	dir := filepath.Join(t.TempDir(), "deep", "data")
	cfg := parse(t, fmt.Sprintf("dataDir: %q\nrepositories: [{code: a, type: song, url: %q, indexName: a}]", dir, upstream.URL()))
	report := check.Run(t.Context(), cfg, check.Options{})
	if !report.OK || report.Failed() != 0 {
		t.Errorf("report %+v", report)
	}
	wantLines(t, of(report, "configuration"), "ok: valid, with 1 repository")
	wantLines(t, of(report, "queue"), "ok: embedded; "+dir+"/queue will be created, with * free")
	wantLines(t, of(report, "index"), "ok: embedded; "+dir+"/index will be created, with * free")
	wantLines(t, of(report, "store"), "ok: embedded; "+dir+"/store will be created, with * free")
	wantLines(t, of(report, "auth"), "ok: authentication is off; 127.0.0.1:8080 can only be reached from this machine")
	wantLines(t, of(report, "repository a"), "ok: 127.0.0.1:* lists 2 studies in *s")
	if _, err := os.Stat(filepath.Dir(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder was made: %v", err)
	}
	var subjects []string
	for _, f := range report.Findings {
		subjects = append(subjects, f.Subject)
	}
	if diff := cmp.Diff([]string{"configuration", "queue", "index", "store", "auth", "repository a"}, subjects); diff != "" {
		t.Error(diff)
	}
}

func TestFoldersThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	repositories := fmt.Sprintf("repositories: [{code: a, type: song, url: %q, indexName: a}]", "http://"+testkit.NewAddress(t))
	t.Run("a file", func(t *testing.T) {
		report := check.Run(t.Context(), parse(t, fmt.Sprintf("dataDir: %q\n", file)+repositories), check.Options{})
		wantLines(t, of(report, "queue"), "fail: "+file+"/queue cannot be read: not a directory -> grant tutti's user read access, or choose another dataDir")
	})
	t.Run("a file in the folder's place", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(dir, "queue"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		report := check.Run(t.Context(), parse(t, fmt.Sprintf("dataDir: %q\n", dir)+repositories), check.Options{})
		wantLines(t, of(report, "queue"), "fail: "+dir+"/queue is not a folder -> *")
		wantLines(t, of(report, "index"), "ok: embedded; "+dir+"/index will be created, with * free")
	})
	t.Run("not to be written", func(t *testing.T) {
		if _, err := os.Stat("/proc/self"); err != nil {
			t.Skip("not even root makes a file in /proc, but there is none")
		}
		report := check.Run(t.Context(), parse(t, "dataDir: /proc/tutti\n"+repositories), check.Options{})
		wantLines(t, of(report, "queue"), "fail: /proc cannot be written: * -> grant tutti's user write access, or choose another dataDir")
	})
}

func TestRepositories(t *testing.T) {
	plain := song(t, testkit.SongConfig{}, "S1")
	empty := song(t, testkit.SongConfig{})
	guarded := song(t, testkit.SongConfig{Token: "t"}, "S1")
	broken := song(t, testkit.SongConfig{}, "S1")
	broken.Fail(testkit.Fault{Status: 500})
	busy := song(t, testkit.SongConfig{}, "S1")
	busy.Fail(testkit.Fault{Status: 503})
	late := song(t, testkit.SongConfig{}, "S1")
	late.Fail(testkit.Fault{Status: 408})
	page := song(t, testkit.SongConfig{}, "S1")
	page.Fail(testkit.Fault{Status: 200, ContentType: "text/html", Body: "<html>s3cret</html>"})
	cut := song(t, testkit.SongConfig{}, "S1")
	cut.Fail(testkit.Fault{Cut: 2})
	for name, tt := range map[string]struct {
		members string
		want    string
	}{
		"right":       {fmt.Sprintf("url: %q", plain.URL()), "ok: * lists 1 study in *"},
		"excluded":    {fmt.Sprintf("url: %q, exclude: {organizations: [S1]}", plain.URL()), "ok: * lists 1 study in *"},
		"empty":       {fmt.Sprintf("url: %q", empty.URL()), "warn: * lists no studies -> nothing is indexed until there is one; check that url is that of the right repository"},
		"token":       {fmt.Sprintf("url: %q, token: t", guarded.URL()), "ok: *"},
		"no token":    {fmt.Sprintf("url: %q", guarded.URL()), "fail: 127.0.0.1:*: the upstream answered with status 401 -> check the repository's token, or its username and password"},
		"wrong token": {fmt.Sprintf("url: %q, token: s3cret", guarded.URL()), "fail: 127.0.0.1:*: the upstream answered with status 401 -> check the repository's token, or its username and password"},
		"another path": {
			fmt.Sprintf("url: %q", plain.URL()+"/none"),
			"fail: 127.0.0.1:*: the upstream answered with status 404 -> check the repository's url and type: tutti requests studies/all below the url",
		},
		"failing": {
			fmt.Sprintf("url: %q", broken.URL()),
			"fail: 127.0.0.1:*: the upstream answered with status 500 -> check the repository's log, and the log of a proxy in front of it",
		},
		"busy": {
			fmt.Sprintf("url: %q", busy.URL()),
			"fail: 127.0.0.1:*: the upstream answered with status 503 -> wait until the repository has started or is less busy",
		},
		"a proxy that waits no longer": {
			fmt.Sprintf("url: %q", late.URL()),
			"fail: 127.0.0.1:*: the upstream answered with status 408 -> check the proxy in front of the repository, which timed out",
		},
		"a web page": {
			fmt.Sprintf("url: %q", page.URL()),
			"fail: 127.0.0.1:*: the upstream's list of studies has an unexpected format -> check the repository's type, and that its url is that of the API and not of a web page: tutti requests studies/all below it",
		},
		"cut": {
			fmt.Sprintf("url: %q", cut.URL()),
			"fail: 127.0.0.1:*: the upstream's answer was cut short: * -> check the repository's log, and the log of a proxy in front of it",
		},
		"nothing listens": {
			fmt.Sprintf("url: %q", "http://"+testkit.NewAddress(t)),
			"fail: 127.0.0.1:* does not answer: nothing listens there -> check host and port, and that the service runs",
		},
		"TLS where is not": {fmt.Sprintf("url: %q", strings.Replace(plain.URL(), "http:", "https:", 1)), "fail: * does not answer: it does not speak TLS -> use http:// instead of https://, if intended"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := parse(t, fmt.Sprintf("dataDir: %q\nrepositories: [{code: a, type: song, indexName: a, %s}]", t.TempDir(), tt.members))
			got := of(check.Run(t.Context(), cfg, check.Options{}), "repository a")
			wantLines(t, got, tt.want)
			if len(got) == 1 && strings.Count(got[0], ": status ") > 0 {
				t.Errorf("the status is reported twice: %s", got[0])
			}
		})
	}
}

func TestRepositoryOfTypeLyric(t *testing.T) {
	upstream, err := testkit.NewLyric(testkit.LyricConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(upstream.Close)
	upstream.AddOrganizations("O1", "O2")
	songs := song(t, testkit.SongConfig{}, "S1")
	for name, tt := range map[string]struct{ url, category, want string }{
		"right": {upstream.URL(), "1", "ok: * lists 2 organizations in *"},
		"wrong category": {
			upstream.URL(), "7",
			"fail: 127.0.0.1:*: the upstream has no such category, or the category has no dictionary -> check the repository's lyric.categoryId",
		},
		"a Song": {
			songs.URL(), "1",
			"fail: 127.0.0.1:*: the upstream answered with status 404 -> check the repository's url and type: tutti requests category/1 below the url",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := parse(t, fmt.Sprintf("dataDir: %q\nrepositories: [{code: a, type: lyric, indexName: a, url: %q, lyric: {categoryId: %q}}]",
				t.TempDir(), tt.url, tt.category))
			wantLines(t, of(check.Run(t.Context(), cfg, check.Options{}), "repository a"), tt.want)
		})
	}
}

func TestNoAnswerInTime(t *testing.T) {
	upstream := song(t, testkit.SongConfig{}, "S1")
	release := make(chan struct{})
	upstream.Fail(testkit.Fault{Release: release})
	t.Cleanup(func() { close(release) })
	cfg := parse(t, fmt.Sprintf("dataDir: %q\nrepositories: [{code: a, type: song, indexName: a, url: %q}]", t.TempDir(), upstream.URL()))
	report := check.Run(t.Context(), cfg, check.Options{Timeout: 20 * time.Millisecond})
	wantLines(t, of(report, "repository a"), "fail: 127.0.0.1:* does not answer: no answer in time -> check host and port, and that no firewall blocks the connection")
}

func TestSettings(t *testing.T) {
	upstream := song(t, testkit.SongConfig{}, "S1")
	file := func(more string) string {
		return fmt.Sprintf("dataDir: %q\nserver: {listen: ':8080'}\nauth: {allowInsecure: true}\nrepositories: [{code: a, type: song, indexName: a, url: %q%s}]",
			t.TempDir(), upstream.URL(), more)
	}
	for name, tt := range map[string]struct {
		file    string
		environ []string
		want    []string
	}{
		"webhook without a secret": {file(""), nil, []string{
			"ok: valid, with 1 repository",
			"warn: :8080 can be reached from other machines, and POST /notifications/a requires no signature -> set repositories[0].notifications.webhook.secret, or restrict access with a proxy",
		}},
		"webhook with a secret": {file(", notifications: {webhook: {secret: s3cret}}"), nil, []string{"ok: valid, with 1 repository"}},
		"only on this machine":  {file(""), []string{"TUTTI_SERVER_LISTEN=localhost:1"}, []string{"ok: valid, with 1 repository"}},
		"warnings": {file(""), []string{"TUTTI_SERVER_LISTEN=localhost:1", "MAESTRO_REPOSITORIES_0_URL=http://b"}, []string{
			"ok: valid, with 1 repository", "warn: MAESTRO_REPOSITORIES_… are ignored: *",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			report := check.Run(t.Context(), parse(t, tt.file, tt.environ...), check.Options{})
			wantLines(t, of(report, "configuration"), tt.want...)
			if !report.OK {
				t.Errorf("a warning failed: %+v", report)
			}
		})
	}
}

func TestInvalidConfigurationListsEveryProblem(t *testing.T) {
	_, err := config.Parse([]byte("server: {lisen: x}\nqueue: {replicas: 3}"), nil)
	report := check.InvalidConfiguration(err)
	wantLines(t, of(report, "configuration"),
		"fail: server.lisen: unknown key; the nearest valid key is server.listen (line 1)",
		"fail: queue.replicas: the embedded queue has one server, 3 replicas need a cluster -> set queue.url *",
	)
	if report.OK || report.Failed() != 2 {
		t.Errorf("report %+v", report)
	}
}

func ExampleReport_WriteText() {
	report := check.Report{Findings: []check.Finding{
		{Subject: "queue", Status: check.StatusOK, Message: "embedded; data/queue will be created, with 20 GiB free"},
		{Subject: "repository song.ca", Status: check.StatusFail, Message: "song.example.org: nothing listens there", Hint: "check host and port"},
	}}
	var out bytes.Buffer
	if err := report.WriteText(&out); err != nil {
		fmt.Println(err)
	}
	fmt.Print(out.String())
	// Output:
	// ok    queue               embedded; data/queue will be created, with 20 GiB free
	// fail  repository song.ca  song.example.org: nothing listens there
	//                           -> check host and port
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestWriteTextReportsErrors(t *testing.T) {
	err := check.InvalidConfiguration(errors.New("x")).WriteText(full{})
	if core.CodeOf(err) != core.CodeInternal || core.MessageOf(err) != "writing the report" {
		t.Errorf("got %v", err)
	}
}

// TestExcludedOrganizations: an excluded organization that its repository does not list may be misspelt.
func TestExcludedOrganizations(t *testing.T) {
	t.Parallel()
	upstream := song(t, testkit.SongConfig{}, "S1", "S2")
	cfg := parse(t, fmt.Sprintf("dataDir: %q\nrepositories: [{code: a, type: song, indexName: a, url: %q, exclude: {organizations: [S2, s1, S3]}}]",
		t.TempDir(), upstream.URL()))
	wantLines(t, of(check.Run(t.Context(), cfg, check.Options{}), "repository a"), "ok: * lists 2 studies in *",
		"warn: does not list 2 excluded studies, such as s1 -> compare exclude.organizations with the repository; ids are case-sensitive")
}
