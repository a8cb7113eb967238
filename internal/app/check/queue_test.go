package check_test

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/app/check"
	"tutti/internal/config"
	"tutti/internal/core"
	indexembedded "tutti/internal/index/embedded"
	"tutti/internal/queue/embedded"
	"tutti/internal/tools/queuetest"
	"tutti/internal/tools/testkit"
)

func startNATS(t *testing.T, dir, listen string) *embedded.Server {
	t.Helper()
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: dir, Listen: listen})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return server
}

// withQueue returns a configuration with members of queue.
func withQueue(t *testing.T, members string) config.Config {
	t.Helper()
	upstream := song(t, testkit.SongConfig{}, "S1")
	return parse(t, fmt.Sprintf("dataDir: %q\nqueue: {%s}\nrepositories: [{code: a, type: song, indexName: a, url: %q}]", t.TempDir(), members, upstream.URL()))
}

// unmonitored is the finding about a server that has the only copy of the queue and no monitoring address.
const unmonitored = "warn: could not check whether nats-server at 127.0.0.1:* syncs every write; it has the only copy of the queue -> *"

func TestExternalQueue(t *testing.T) {
	url := startNATS(t, t.TempDir(), "127.0.0.1:0").URL()
	gone := testkit.NewAddress(t)
	upstream := song(t, testkit.SongConfig{})
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	pki, err := testkit.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	certificate, private, err := pki.Certificate(time.Now().Add(-time.Hour), time.Now().Add(time.Hour), "127.0.0.1", "localhost")
	if err != nil {
		t.Fatal(err)
	}
	files := t.TempDir()
	write := func(name string, content []byte) string {
		if err := os.WriteFile(filepath.Join(files, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(files, name)
	}
	ca, cert, key := write("ca.pem", pki.PEM), write("cert.pem", certificate), write("key.pem", private)
	both := queuetest.Serve(t, t.TempDir(), fmt.Sprintf("tls: {cert_file: %q, key_file: %q, ca_file: %q, verify: true}", cert, key, ca))
	for name, tt := range map[string]struct {
		queue string
		want  []string
	}{
		"right":           {fmt.Sprintf("url: %q", url), []string{"ok: nats-server 2.* at 127.0.0.1:*, JetStream is on, 0 streams", unmonitored}},
		"one of two":      {fmt.Sprintf("url: 'nats://%s,%s'", gone, url), []string{"ok: nats-server *", "warn: " + gone + " does not answer: nothing listens there -> *", unmonitored}},
		"nothing listens": {"url: nats://u:s3cret@" + gone, []string{"fail: " + gone + " does not answer: nothing listens there -> *"}},
		"no cluster": {
			fmt.Sprintf("url: %q, replicas: 3", url),
			[]string{"fail: nats-server 2.* at * is not in a cluster, but queue.replicas is 3 -> set queue.replicas to 1, or queue.url to a cluster's"},
		},
		"another program": {
			"url: " + strings.Replace(upstream.URL(), "http:", "nats:", 1),
			[]string{"fail: 127.0.0.1:* accepts connections, but does not speak NATS -> check the port: NATS serves clients at port 4222 by default; its monitoring port and HTTP or TLS proxies do not work"},
		},
		"another program and NATS": {
			fmt.Sprintf("url: '%s,%s'", strings.Replace(secure.URL, "https:", "nats:", 1), url),
			[]string{"ok: nats-server *", "warn: 127.0.0.1:* accepts connections, but does not speak NATS -> check the port: NATS serves clients at port 4222 by default; its monitoring port and HTTP or TLS proxies do not work", unmonitored},
		},
		"WebSocket": {"url: ws://" + gone, []string{"fail: " + gone + " does not answer: nothing listens there -> *"}},
		"no credentials file": {
			fmt.Sprintf("url: %q, credentialsFile: /none/a.creds", url),
			[]string{"fail: queue.credentialsFile: /none/a.creds cannot be read: no such file or directory -> set it to the .creds file of a NATS user"},
		},
		"no nkey": {
			fmt.Sprintf("url: %q, nkeyFile: /dev/null", url),
			[]string{"fail: 127.0.0.1:* is not asked: queue.nkeyFile: /dev/null does not contain the seed of an nkey -> set it to a file with the seed of a user's nkey"},
		},
		"certificates for a server without TLS": {
			fmt.Sprintf("url: %q, caFile: %q", url, ca),
			[]string{"fail: 127.0.0.1:* the server does not speak TLS -> remove the files of TLS from queue, or set its url to servers with TLS"},
		},
		"no certificate": {
			fmt.Sprintf("url: %q, caFile: %q", strings.Replace(both.ClientURL(), "nats:", "tls:", 1), ca),
			[]string{"fail: 127.0.0.1:* cannot be used: it requires a client certificate -> set queue.clientCertFile and its key"},
		},
		"a certificate": {
			fmt.Sprintf("url: %q, caFile: %q, clientCertFile: %q, clientKeyFile: %q", strings.Replace(both.ClientURL(), "nats:", "tls:", 1), ca, cert, key),
			[]string{"ok: nats-server 2.* at 127.0.0.1:*, JetStream is on, 0 streams", unmonitored},
		},
		"no credentials": {
			fmt.Sprintf("url: %q, credentialsFile: /dev/null", url),
			[]string{"fail: queue.credentialsFile: /dev/null does not contain a user JWT and an NKEY seed -> *"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := withQueue(t, tt.queue)
			opts := check.Options{}
			if strings.HasPrefix(name, "another program") {
				// It waits for the client's request, as the client waits for its greeting.
				opts.Timeout = 2 * time.Second
			}
			report := check.Run(t.Context(), cfg, opts)
			wantLines(t, of(report, "queue"), tt.want...)
			if _, err := os.Stat(filepath.Join(cfg.DataDir, "queue")); err == nil {
				t.Error("a folder was made for a queue that is elsewhere")
			}
		})
	}
}

// TestOnlyCopy: of a server that has the only copy of the queue the check says whether it syncs every write, or that it could not check.
func TestOnlyCopy(t *testing.T) {
	always := queuetest.Serve(t, t.TempDir(), "jetstream: {sync_interval: always}")
	later := queuetest.Serve(t, t.TempDir(), "jetstream: {sync_interval: 10s}")
	at := func(address net.Addr) string { return "http://" + address.String() }
	for name, tt := range map[string]struct {
		url, monitoring string
		want            string
	}{
		"always":  {always.ClientURL(), at(always.MonitorAddr()), "ok: nats-server at 127.0.0.1:* syncs every write"},
		"later":   {later.ClientURL(), at(later.MonitorAddr()), "warn: nats-server at 127.0.0.1:* syncs once in 10s; requests that it confirmed * -> set sync_interval: always in the block jetstream of nats-server's configuration, or use a cluster of three servers"},
		"another": {later.ClientURL(), at(always.MonitorAddr()), "warn: could not check whether nats-server at 127.0.0.1:* syncs every write; *"},
		"nothing": {later.ClientURL(), "", "warn: could not check whether nats-server at 127.0.0.1:* syncs every write; * -> set sync_interval: always in the block jetstream of nats-server's configuration, and queue.monitoringUrl to have it checked"},
	} {
		t.Run(name, func(t *testing.T) {
			report := check.Run(t.Context(), withQueue(t, fmt.Sprintf("url: %q, monitoringUrl: %q", tt.url, tt.monitoring)), check.Options{})
			wantLines(t, of(report, "queue"), "ok: nats-server *", tt.want)
		})
	}
	frozen := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"status":"error","errors":[{"type":"STREAM","account":"$G","stream":"REQUESTS","error":"JetStream stream '$G > REQUESTS' write error: input/output error"}]}`))
			return
		}
		_, _ = fmt.Fprintf(w, `{"server_id":%q,"config":{"sync_interval":120000000000,"sync_always":true}}`, later.ID())
	}))
	t.Cleanup(frozen.Close)
	report := check.Run(t.Context(), withQueue(t, fmt.Sprintf("url: %q, monitoringUrl: %q", later.ClientURL(), frozen.URL)), check.Options{})
	wantLines(t, of(report, "queue"), "ok: nats-server *",
		"fail: nats-server at 127.0.0.1:* stores nothing in a stream since an error: *REQUESTS' write error: input/output error -> check its disk, and restart this nats-server: it stores in that stream again only then",
		"ok: nats-server at 127.0.0.1:* syncs every write")
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	for monitoring, want := range map[string]string{
		other.URL:         "is not the monitoring address of a nats-server with JetStream -> set it to the address of http_port, 8222 in most configurations",
		later.ClientURL(): "does not answer as to the system account -> use a user of the system account, which may publish to $SYS.REQ.SERVER.PING.* and subscribe to _INBOX.>",
	} {
		report = check.Run(t.Context(), withQueue(t, fmt.Sprintf("url: %q, monitoringUrl: %q", later.ClientURL(), monitoring)), check.Options{})
		wantLines(t, of(report, "queue"), "ok: nats-server *", "warn: queue.monitoringUrl: *"+want, "warn: could not check *")
	}
	gone := testkit.NewAddress(t)
	report = check.Run(t.Context(), withQueue(t, fmt.Sprintf("url: %q, monitoringUrl: 'nats://u:s3cret@%s'", later.ClientURL(), gone)), check.Options{})
	wantLines(t, of(report, "queue"), "ok: nats-server *", "warn: queue.monitoringUrl: "+gone+" does not answer*", "warn: could not check *")
}

// silentStream is a stream of a natsFake that does not answer.
const silentStream = "silent"

// natsFake speaks the part of the NATS protocol that a probe uses, with configured answers.
type natsFake struct {
	info, account, refusal string
	// stream answers a request for a stream; by default there is none.
	stream string
	// hello is the client's CONNECT.
	hello chan map[string]any
}

func (n natsFake) serve(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		n.talk(conn)
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-served
	})
	return "nats://" + l.Addr().String()
}

func (n natsFake) talk(conn net.Conn) {
	fmt.Fprintf(conn, "INFO %s\r\n", n.info)
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "CONNECT "):
			var hello map[string]any
			_ = json.Unmarshal([]byte(line[len("CONNECT "):]), &hello)
			n.hello <- hello
		case line == "PING" && n.refusal != "" && n.account == "":
			fmt.Fprintf(conn, "-ERR '%s'\r\n", n.refusal)
		case line == "PING":
			fmt.Fprint(conn, "PONG\r\n")
		case strings.HasPrefix(line, "PUB ") && n.refusal != "":
			fmt.Fprintf(conn, "-ERR '%s'\r\n", n.refusal)
		case strings.HasPrefix(line, "PUB ") && n.account == "":
			fmt.Fprintf(conn, "HMSG %s 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n", strings.Fields(line)[2])
		case strings.HasPrefix(line, "PUB $JS.API.STREAM.INFO.") && n.stream == silentStream:
		case strings.HasPrefix(line, "PUB $JS.API.STREAM.INFO."):
			answer := n.stream
			if answer == "" {
				answer = `{"error":{"code":404,"err_code":10059,"description":"stream not found"}}`
			}
			fmt.Fprintf(conn, "PING\r\nMSG %s 1 %d\r\n%s\r\n", strings.Fields(line)[2], len(answer), answer)
		case strings.HasPrefix(line, "HPUB "): // a message, which is not stored
		case strings.HasPrefix(line, "PUB "):
			fmt.Fprintf(conn, "PING\r\nMSG %s 1 %d\r\n%s\r\n", strings.Fields(line)[2], len(n.account), n.account)
		}
	}
}

func TestExternalQueueThatIsNotReady(t *testing.T) {
	const on = `{"version":"2.15.2","jetstream":true,"cluster":"c","nonce":"n0nce"}`
	for name, tt := range map[string]struct {
		fake    natsFake
		members string
		want    string
	}{
		"without JetStream": {
			natsFake{info: `{"version":"2.15.2"}`},
			"",
			"fail: nats-server 2.15.2 at * has no JetStream -> start nats-server with -js, or add jetstream {} to its configuration",
		},
		"too old": {
			natsFake{info: `{"version":"2.10.27","jetstream":true}`, account: "{}"},
			"",
			"fail: nats-server 2.10.27 at 127.0.0.1:* is too old: tutti needs nats-server 2.12 or later -> upgrade nats-server to 2.12 or later",
		},
		"wrong credentials": {
			natsFake{info: on, refusal: "Authorization Violation"},
			"",
			"fail: 127.0.0.1:* does not accept the credentials -> check queue.credentialsFile, or the user and password in queue.url",
		},
		"no right": {
			natsFake{info: on, refusal: `Permissions Violation for Publish to "$JS.API.INFO"`, account: "{}"},
			"",
			"fail: nats-server * at 127.0.0.1:* does not let this user use JetStream -> grant the user *",
		},
		"another refusal": {natsFake{info: on, refusal: "maximum connections exceeded"}, "", "fail: 127.0.0.1:* reports maximum connections exceeded"},
		"account without JetStream": {
			natsFake{info: on, account: `{"error":{"code":503,"err_code":10039,"description":"JetStream not enabled for account"}}`},
			"",
			"fail: * does not let this account use JetStream -> enable JetStream for the account of this user",
		},
		"few streams": {
			natsFake{info: on, account: `{"limits":{"max_streams":3,"max_storage":-1}}`},
			"",
			"fail: * lets the account have 3 streams at most, but tutti needs 4 -> raise the account's stream limit",
		},
		"just enough streams": {
			natsFake{info: on, account: `{"limits":{"max_streams":4,"max_storage":-1}}`},
			"",
			"ok: *, JetStream is on, 0 streams",
		},
		"no storage": {
			natsFake{info: on, account: `{"limits":{"max_streams":-1,"max_storage":1048576}}`},
			"",
			"fail: * lets the account keep only 1.0 MiB on disk -> raise the account's storage limit",
		},
		"little storage": {
			natsFake{info: on, account: `{"streams":4,"limits":{"max_streams":-1,"max_storage":536870912}}`},
			", replicas: 3",
			"warn: nats-server 2.15.2 at *, JetStream is on, 4 streams, but the account may keep only 512 MiB on disk -> raise the account's storage limit before you index much",
		},
		"streams that store nothing": {
			natsFake{info: strings.Replace(on, "{", `{"headers":true,"max_payload":1048576,"server_name":"nats-1",`, 1), account: `{"streams":4}`, stream: `{"config":{"name":"REQUESTS"},"state":{}}`},
			", replicas: 3",
			"ok: nats-server 2.15.2 at *, JetStream is on, 4 streams\n" +
				"fail: nats-server nats-1 answers, but did not store a message within 5s in * -> check its disk and its log; after an I/O error it stores nothing in such a stream until it is restarted, so restart nats-server nats-1; a disk that was only slow continues by itself",
		},
		"streams that cannot be checked": {
			natsFake{info: on, account: `{"streams":4}`, stream: "{}x"},
			", replicas: 3",
			"ok: nats-server 2.15.2 at *, JetStream is on, 4 streams\nwarn: could not check whether 127.0.0.1:* stores messages: the streams could not be checked -> grant the user the permissions for NATS that deploy/docs/engines.md lists",
		},
		"streams that do not answer": {
			natsFake{info: on, account: `{"streams":4}`, stream: silentStream},
			", replicas: 3",
			"ok: nats-server 2.15.2 at *, JetStream is on, 4 streams\nwarn: could not check whether 127.0.0.1:* stores messages: the streams did not answer in time -> check nats-server and its log",
		},
		"another protocol": {natsFake{info: "hello"}, "", "fail: 127.0.0.1:* accepts connections, but does not speak NATS -> check the port: NATS serves clients at port 4222 by default; its monitoring port and HTTP or TLS proxies do not work"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.fake.hello = make(chan map[string]any, 1)
			opts := check.Options{}
			if tt.fake.stream == silentStream {
				opts.Timeout = time.Second
			}
			report := check.Run(t.Context(), withQueue(t, fmt.Sprintf("url: %q%s", tt.fake.serve(t), tt.members)), opts)
			wantLines(t, of(report, "queue"), strings.Split(tt.want, "\n")...)
		})
	}
}

// TestPermissionsOfTheGuide: the guide that a hint names lists the permissions of NATS.
func TestPermissionsOfTheGuide(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "deploy", "docs", "engines.md"))
	if _, after, found := strings.Cut(string(guide), "NATS, for `queue.url`"); err != nil || !found || !strings.Contains(after, "permissions: {") {
		t.Errorf("the guide lists no permissions for NATS: %v", err)
	}
}

func TestQueueCredentials(t *testing.T) {
	// A user's seed: two bytes of kind, 32 of the seed and two of checksum.
	const seed = "SUAH5U2HUK73H7OJZY6JUAN4YZFHH2QOFHFIY55GOZWSSJ6FU6OXAZ4PMY"
	decoded, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(seed)
	if err != nil {
		t.Fatal(err)
	}
	public := ed25519.NewKeyFromSeed(decoded[2 : 2+ed25519.SeedSize]).Public().(ed25519.PublicKey)
	file := filepath.Join(t.TempDir(), "user.creds")
	content := "-----BEGIN NATS USER JWT-----\ne30.s3cret.x\n------END NATS USER JWT------\n\n" +
		"*** keep it ***\n-----BEGIN USER NKEY SEED-----\n" + seed + "\n------END USER NKEY SEED------\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	fake := natsFake{info: `{"version":"2.15.2","jetstream":true,"nonce":"n0nce"}`, account: `{"streams":1}`, hello: make(chan map[string]any, 1)}
	url := strings.Replace(fake.serve(t), "nats://", "nats://u:s3cret@", 1)
	report := check.Run(t.Context(), withQueue(t, fmt.Sprintf("url: %q, credentialsFile: %q", url, file)), check.Options{})
	wantLines(t, of(report, "queue"), "ok: nats-server 2.15.2 at 127.0.0.1:*, JetStream is on, 1 stream", unmonitored)
	hello := <-fake.hello
	if hello["user"] != "u" || hello["pass"] != "s3cret" || hello["jwt"] != "e30.s3cret.x" {
		t.Errorf("the client said %v", hello)
	}
	sig, err := base64.RawURLEncoding.DecodeString(fmt.Sprint(hello["sig"]))
	if err != nil || !ed25519.Verify(public, []byte("n0nce"), sig) {
		t.Errorf("the signature %v is not the key's", hello["sig"])
	}
}

// TestSecretThatIsGone: a secret's file is read for each connection, and one that was emptied since the start is named; once it is written again,
// it is used.
func TestSecretThatIsGone(t *testing.T) {
	server := queuetest.Serve(t, t.TempDir(), "authorization: {user: u, password: s3cret}")
	file := filepath.Join(t.TempDir(), "password")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("s3cret")
	cfg := withQueue(t, fmt.Sprintf("url: 'nats://%s', username: u, passwordFile: %q", server.Addr(), file))
	write("")
	wantLines(t, of(check.Run(t.Context(), cfg, check.Options{}), "queue"),
		"fail: *queue.passwordFile: *"+file+"* -> write the secret into the file; it is read again with the next connection")
	write("s3cret")
	wantLines(t, of(check.Run(t.Context(), cfg, check.Options{}), "queue"), "ok: nats-server *", unmonitored)
}

// listing returns each file below dir with its size and time.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && !d.IsDir() {
			files[path] = fmt.Sprint(info.Size(), info.ModTime())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestBesideARunningServer: a probe reports that a tutti runs on the data folder, and changes neither locks nor files.
func TestBesideARunningServer(t *testing.T) {
	upstream := song(t, testkit.SongConfig{}, "S1")
	dir := t.TempDir()
	running := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/base/ready" {
			_, _ = io.WriteString(w, `{"ready":true,"reasons":["repository b: paused","repository a: never indexed; run tutti index a"]}`)
		}
	}))
	defer running.Close()
	cfg := parse(t, fmt.Sprintf("dataDir: %q\nserver: {listen: %q, basePath: /base}\nrepositories: [{code: a, type: song, indexName: a, url: %q}]",
		dir, strings.TrimPrefix(running.URL, "http://"), upstream.URL()))

	// Before and after, a probe does not keep a server from starting.
	if report := check.Run(t.Context(), cfg, check.Options{}); !report.OK {
		t.Errorf("before: %+v", report)
	}
	startNATS(t, filepath.Join(dir, "queue"), "")
	index, err := indexembedded.Open(indexembedded.Config{Dir: filepath.Join(dir, "index")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = index.Close() })

	before := listing(t, dir)
	report := check.Run(t.Context(), cfg, check.Options{})
	if diff := cmp.Diff(before, listing(t, dir)); diff != "" {
		t.Error("the probe changed files:", diff)
	}
	if !report.OK {
		t.Errorf("report %+v", report)
	}
	if _, err := os.Stat("/proc/locks"); err == nil {
		wantLines(t, of(report, "queue"), fmt.Sprintf("ok: embedded; %s/queue is in use by a running tutti (process %d)", dir, os.Getpid()))
		wantLines(t, of(report, "index"), fmt.Sprintf("ok: embedded; %s/index is in use by a running tutti (process %d)", dir, os.Getpid()),
			"warn: repository a was never indexed -> run tutti index a")
	}
	// The lock is still held: a second server is refused.
	_, err = embedded.LockDir(filepath.Join(dir, "queue"))
	if core.CodeOf(err) != core.CodeConflict || core.MessageOf(err) != "another tutti uses the data folder "+dir+"/queue" ||
		core.HintOf(err) != "stop it, or set a different dataDir for this one" {
		t.Errorf("got %v", err)
	}
}
