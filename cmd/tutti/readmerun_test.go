package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"go.yaml.in/yaml/v3"

	"tutti/internal/tools/testkit"
)

// TestReadmeRuns runs the README's examples in the order in which they stand, on one data folder: shell commands by a
// shell, files and fragments of the configuration as a reader would apply them. Only hosts, the address of
// the server, and the ids that stand for one of an answer are replaced.
func TestReadmeRuns(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	for _, block := range regexp.MustCompile("(?s)```(sh|yaml|json)\n(.*?)```").FindAllStringSubmatch(readme(t), -1) {
		switch block[1] {
		case "yaml":
			r.configure(block[2])
		case "json":
			r.file(block[2])
		default:
			r.commands(block[2])
		}
	}
	// access.json lets anonymous callers read what is open.
	r.run(`unset TUTTI_TOKEN
curl -X POST -H 'Content-Type: application/json' http://` + r.address + `/analyses/graphql -d '{"query": "{ analysis { hits { total } } }"}'`)
	r.stop()
	// Expected output, in this order.
	rest := r.out.String()
	for _, want := range []string{
		`"indexName":"collab"`, `"status":"OK"`, "ok    catalogue donors", `"catalogId":"donors"`,
		`"hits":{"total":1,`, `"key":"STUDY-1","doc_count":1`, `STUDY-1,a.bam`, "\ntutti_", "submitter", "revoked ",
		`"successful":true`, "succeeded: job", "registered sequencing, version 2", "analyses  analysis       available", "donors    donor          available", "_tutti", "backed up ", "restored ", "ok    configuration", `"hits":{"total":1}`,
	} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Errorf("%q does not follow in\n%s", want, r.out.String())
			break
		}
		rest = after
	}
}

// nowhere is an address that refuses connections.
const nowhere = "127.0.0.1:1"

// reader follows the README in a folder of its own.
type reader struct {
	*testing.T
	dir, address string
	replacer     *strings.Replacer
	serve        string
	server       *exec.Cmd
	log          *bytes.Buffer // of server
	ended        chan struct{} // closed when server has ended
	changed      bool
	out          bytes.Buffer
}

func newReader(t *testing.T) *reader {
	t.Helper()
	song, err := testkit.NewSong(testkit.SongConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(song.Close)
	song.AddStudy("STUDY-1")
	if err := song.Put("STUDY-1", []byte(`{"analysisId":"ANALYSIS-1","studyId":"STUDY-1","analysisState":"PUBLISHED"}`)); err != nil {
		t.Fatal(err)
	}
	lyric, err := testkit.NewLyric(testkit.LyricConfig{CentralEntity: "donor"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(lyric.Close)
	r := &reader{T: t, dir: t.TempDir(), address: testkit.NewAddress(t)}
	r.replacer = strings.NewReplacer("https://song.example.org", song.URL(), "https://lyric.example.org", lyric.URL(), "127.0.0.1:8080", r.address,
		"login.example.org", nowhere, "portal.example.org", nowhere, "ids.example.org", "127.0.0.1", "kafka-1:9092", nowhere, "kafka-2:9092", nowhere)
	program, err := exec.LookPath("tutti")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(r.dir, "tutti")); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"variables": "", // what the shell knows from one command to the next
		// The files that a reader registers.
		"sequencing.json":   `{"name": "sequencing", "schema": {"type": "object", "required": ["experiment"], "properties": {"experiment": {"type": "object"}}}}`,
		"variant-call.json": `{"name": "variant-call", "schema": {"type": "object", "required": ["experiment"], "properties": {"experiment": {"type": "object"}}}}`,
		// The files that a reader migrates.
		"maestro.env":     "MAESTRO_REPOSITORIES_0_BASE_URL=" + song.URL() + "\nMAESTRO_REPOSITORIES_0_CODE=song.collab\nMAESTRO_REPOSITORIES_0_INDEX_NAME=collab",
		"application.yml": "song: {id: song.collab}",
	} {
		r.write(name, []byte(content))
	}
	t.Cleanup(func() {
		if r.server != nil {
			_ = r.server.Process.Kill()
			<-r.ended
		}
	})
	return r
}

func (r *reader) write(name string, content []byte) {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), content, 0o600); err != nil {
		r.Fatal(err)
	}
}

// configure writes tutti.yaml, or puts a fragment into it: members of a map by their names, repositories by their codes.
// The database of a fragment is left out: there is none.
func (r *reader) configure(block string) {
	r.Helper()
	block = r.replacer.Replace(block)
	if strings.HasPrefix(block, "# tutti.yaml") {
		r.write("tutti.yaml", []byte(block))
		return
	}
	file, err := os.ReadFile(filepath.Join(r.dir, "tutti.yaml"))
	if err != nil {
		r.Fatal(err)
	}
	var whole, fragment map[string]any
	if err := yaml.Unmarshal(file, &whole); err != nil {
		r.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(block), &fragment); err != nil {
		r.Fatal(err)
	}
	delete(fragment, "store")
	text, err := yaml.Marshal(merged(whole, fragment))
	if err != nil {
		r.Fatal(err)
	}
	r.write("tutti.yaml", text)
	r.changed = true
}

// file writes a mapping file, or puts a member of a catalogue's configuration into the folder of analyses.
func (r *reader) file(block string) {
	r.Helper()
	if gjson.Get(block, "mappings").Exists() {
		r.write("mapping.json", []byte(block))
		return
	}
	name := "network.json"
	if gjson.Get(block, "scope").Exists() {
		name = "access.json"
	}
	r.write(filepath.Join("catalogues", "analyses", name), []byte(r.replacer.Replace(block)))
}

func merged(whole, fragment any) any {
	switch part := fragment.(type) {
	case map[string]any:
		all, ok := whole.(map[string]any)
		if !ok {
			return part
		}
		for name, value := range part {
			all[name] = merged(all[name], value)
		}
		return all
	case []any:
		all, _ := whole.([]any)
		for _, item := range part {
			i := slices.IndexFunc(all, func(known any) bool { return code(known) != nil && code(known) == code(item) })
			if i < 0 {
				all = append(all, item)
			} else {
				all[i] = merged(all[i], item)
			}
		}
		return all
	default:
		return fragment
	}
}

func code(item any) any {
	m, _ := item.(map[string]any)
	return m["code"]
}

// commands runs a block of commands. A server that is started takes the place of the one that runs, and a
// configuration that was changed wants another start.
func (r *reader) commands(block string) {
	r.Helper()
	if strings.HasPrefix(block, "go ") && !strings.Contains(block, "tutti serve") {
		return
	}
	if r.changed && r.serve != "" && !strings.Contains(block, "tutti serve") {
		r.start(r.serve)
	}
	script := ""
	for line := range strings.Lines(r.replacer.Replace(block)) {
		switch {
		case strings.HasPrefix(line, "go "):
		case strings.Contains(line, "tutti serve"):
			r.run(script)
			r.start(line)
			script = ""
		case strings.Contains(line, "keys create --config"):
			r.stop()
			script += line
		case strings.Contains(line, "/analysis/publish/ANALYSIS-1"):
			r.run(script)
			ids := regexp.MustCompile(`"analysisId":"([^"]+)"`).FindAllStringSubmatch(r.out.String(), -1)
			if len(ids) == 0 {
				r.Fatalf("no analysis was submitted:\n%s", r.out.String())
			}
			r.run(strings.Replace(line, "ANALYSIS-1", ids[len(ids)-1][1], 1))
			r.indexed()
			script = ""
		case strings.Contains(line, "KEY-ID"):
			r.run(script)
			id := regexp.MustCompile(`(?m)^(\S+) +submitter `).FindStringSubmatch(r.out.String())
			if id == nil {
				r.Fatalf("no key of submitter is listed:\n%s", r.out.String())
			}
			script = strings.Replace(line, "KEY-ID", id[1], 1)
		case strings.Contains(line, "tutti check"):
			code, _, _ := strings.Cut(line, "#")
			script += strings.TrimSpace(code) + " || true\n" // hosts of the fragments, such as kafka-1, are nowhere
		default:
			script += line
		}
	}
	r.run(script)
}

func (r *reader) environ() []string {
	return append(os.Environ(), "TUTTI_SERVER_LISTEN="+r.address, "TUTTI_SERVER=http://"+r.address)
}

// run runs commands, each of which must succeed; variables stay from one call to the next.
func (r *reader) run(script string) {
	r.Helper()
	if strings.TrimSpace(script) == "" {
		return
	}
	cmd := exec.CommandContext(r.Context(), "sh", "-c", "set -ae; . ./variables\n"+script+"\nexport -p > variables")
	cmd.Dir, cmd.Env = r.dir, r.environ()
	out, err := cmd.CombinedOutput()
	r.out.Write(out)
	if err != nil || bytes.Contains(out, []byte(`"errors":`)) {
		r.Fatalf("%v\n%s\n%s", err, script, out)
	}
}

// start starts a server in the place of the one that runs, and returns once it answers.
func (r *reader) start(line string) {
	r.Helper()
	r.stop()
	cmd := exec.Command("sh", "-c", "exec env "+line)
	cmd.Dir, cmd.Env = r.dir, r.environ()
	log := new(bytes.Buffer)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	r.serve, r.server, r.log, r.ended, r.changed = line, cmd, log, ended, false
	r.until(func() bool {
		select {
		case <-ended:
			r.server = nil
			r.Fatalf("%s\n%s", line, log.String())
		default:
		}
		return status(r.Context(), "http://"+r.address+"/ping") == http.StatusOK
	})
}

// stop ends the server that runs, as ctrl-c does.
func (r *reader) stop() {
	r.Helper()
	if r.server == nil {
		return
	}
	if err := r.server.Process.Signal(syscall.SIGINT); err != nil {
		r.Fatal(err)
	}
	<-r.ended
	if code := r.server.ProcessState.ExitCode(); code != 0 {
		r.Errorf("the server ended with %d", code)
	}
	if lines := strings.Split(strings.TrimSpace(r.log.String()), "\n"); !strings.Contains(lines[len(lines)-1], "msg=stopped") {
		r.Errorf("the last line of the server's log is %q", lines[len(lines)-1])
	}
	r.server = nil
}

// indexed returns once the index has what was published.
func (r *reader) indexed() {
	r.Helper()
	r.until(func() bool {
		resp, err := http.Get("http://" + r.address + "/metrics")
		if err != nil {
			r.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		return err == nil && bytes.Contains(text, []byte(`tutti_documents_total{index="analyses",outcome="indexed"} 1`))
	})
}

func (r *reader) until(done func() bool) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for !done() {
		select {
		case <-poll.C:
		case <-ctx.Done():
			r.Fatal("it does not come")
		}
	}
}

// curl does what the README's calls of curl do, and fails with an error's status.
func curl() {
	method, body, url := "", "", ""
	header := http.Header{}
	for i := 1; i < len(os.Args); i++ {
		switch os.Args[i] {
		case "-X":
			i++
			method = os.Args[i]
		case "-d":
			i++
			body = os.Args[i]
		case "--data-binary": // @-
			i++
			read, err := io.ReadAll(os.Stdin)
			if err != nil {
				panic(err)
			}
			body = string(read)
		case "-H":
			i++
			name, value, _ := strings.Cut(os.Args[i], ": ")
			header.Set(name, value)
		default:
			url = os.Args[i]
		}
	}
	if method == "" && body != "" {
		method = http.MethodPost
		if header.Get("Content-Type") == "" {
			header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
	}
	req, err := http.NewRequest(method, url, strings.NewReader(body)) //nolint:noctx // a process of its own
	if err != nil {
		panic(err)
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		panic(err)
	}
	_, _ = io.Copy(os.Stdout, resp.Body)
	fmt.Println()
	if resp.StatusCode >= 400 {
		os.Exit(22)
	}
}

// openssl does what the README's call of openssl does: dgst -sha256 -hmac SECRET -hex.
func openssl() {
	mac := hmac.New(sha256.New, []byte(os.Args[4]))
	if _, err := io.Copy(mac, os.Stdin); err != nil {
		panic(err)
	}
	fmt.Println("SHA2-256(stdin)= " + hex.EncodeToString(mac.Sum(nil)))
}
