package queue_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"tutti/internal/base/tlsconfig"
	"tutti/internal/core"
	"tutti/internal/queue"
	"tutti/internal/tools/queuetest"
	"tutti/internal/tools/testkit"
)

// TestSecuredServer: a server with TLS, client certificates, users and nkeys is used, and the check and the start say what is wrong with a
// wrong setting, with its key. A password that becomes wrong while the queue runs is said by Ready, and is healed when its file is right again.
func TestSecuredServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	authority := func(name string) *testkit.Authority {
		t.Helper()
		a, err := testkit.NewAuthority()
		if err != nil {
			t.Fatal(err)
		}
		write(name, a.PEM)
		return a
	}
	issue := func(a *testkit.Authority, name string, life time.Duration) tls.Certificate {
		t.Helper()
		cert, key, err := a.Certificate(time.Now().Add(-time.Hour), time.Now().Add(life), "127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		write(name+".pem", cert)
		write(name+".key", key)
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	own, other := authority("ca.pem"), authority("other.pem")
	pair, old := issue(own, "server", time.Hour), issue(own, "old", -time.Minute)
	issue(own, "client", time.Hour)
	issue(other, "foreign", time.Hour)
	nkey, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	public, err := nkey.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := nkey.Seed()
	if err != nil {
		t.Fatal(err)
	}
	write("nkey", seed)
	write("another", anotherSeed(t))
	write("right", []byte("right-p4ss\n"))
	write("wrong", []byte("wrong-p4ss"))
	run := func(options *natsserver.Options) *natsserver.Server {
		t.Helper()
		s, err := natsserver.NewServer(options)
		if err != nil {
			t.Fatal(err)
		}
		go s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		if !s.ReadyForConnections(10 * time.Second) {
			t.Fatal("the server does not start")
		}
		return s
	}
	serve := func(pair tls.Certificate, verify, limited bool) *natsserver.Server {
		t.Helper()
		config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, ClientCAs: x509.NewCertPool()}
		config.ClientCAs.AppendCertsFromPEM(own.PEM)
		if verify {
			config.ClientAuth = tls.RequireAndVerifyClientCert
		}
		user := &natsserver.User{Username: "tutti", Password: "right-p4ss"}
		if limited {
			user.Permissions = &natsserver.Permissions{Publish: &natsserver.SubjectPermission{Deny: []string{"$JS.API.STREAM.CREATE.>", "$JS.API.STREAM.UPDATE.>"}}}
		}
		return run(&natsserver.Options{
			Host: "127.0.0.1", Port: natsserver.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true,
			TLSConfig: config, TLSTimeout: 5, TLSVerify: verify, Users: []*natsserver.User{user}, Nkeys: []*natsserver.NkeyUser{{Nkey: public}},
		})
	}
	secured := queuetest.Secured{Dir: t.TempDir(), Way: queuetest.WayOperator}
	if err := secured.Write(); err != nil {
		t.Fatal(err)
	}
	options, err := natsserver.ProcessConfigFile(filepath.Join(secured.Dir, "single.conf"))
	if err != nil {
		t.Fatal(err)
	}
	options.Port, options.HTTPPort, options.NoSigs, options.NoLog = natsserver.RANDOM_PORT, 0, true, true
	operator := run(options).ClientURL()
	creds := func(file string) queue.Security {
		return queue.Security{
			CredentialsFile: filepath.Join(secured.Dir, file), TLS: tlsconfig.Files{Key: "queue", CAFile: filepath.Join(secured.Dir, "ca.pem")},
		}
	}
	expired, plain := serve(old, false, false).ClientURL(), serve(pair, false, false).ClientURL()
	mutual, limited := serve(pair, true, false).ClientURL(), serve(pair, false, true).ClientURL()
	behind := queuetest.Serve(t, t.TempDir(), "").Addr().String()
	proxied := closingProxy(t, behind, pair, own, `"tls_required":true,`)
	verifying := closingProxy(t, behind, pair, own, `"tls_required":true,"tls_verify":true,`)
	in := func(name string) string { return filepath.Join(dir, name) }
	password := func(file string) func() (string, error) {
		return func() (string, error) {
			text, err := os.ReadFile(in(file))
			return strings.TrimSpace(string(text)), err
		}
	}
	files := func(ca, pair string) tlsconfig.Files {
		f := tlsconfig.Files{Key: "queue", CAFile: in(ca)}
		if pair != "" {
			f.ClientCertFile, f.ClientKeyFile = in(pair+".pem"), in(pair+".key")
		}
		return f
	}
	for name, tt := range map[string]struct {
		url           string
		security      queue.Security
		message, hint string
	}{
		"password": {plain, queue.Security{Username: "tutti", Password: password("right"), TLS: files("ca.pem", "")}, "", ""},
		"nkey":     {plain, queue.Security{NKeyFile: in("nkey"), TLS: files("ca.pem", "")}, "", ""},
		"mutual":   {mutual, queue.Security{NKeyFile: in("nkey"), TLS: files("ca.pem", "client")}, "", ""},
		"wrong":    {plain, queue.Security{Username: "tutti", Password: password("wrong"), TLS: files("ca.pem", "")}, "does not accept the credentials", "check queue.username and queue.password"},
		"another": {
			plain,
			queue.Security{NKeyFile: in("another"), TLS: files("ca.pem", "")},
			"does not accept the credentials", "check queue.nkeyFile",
		},
		"creds":         {operator, creds("tutti.creds"), "", ""},
		"foreign creds": {operator, creds("foreign.creds"), "does not accept the credentials", "check queue.credentialsFile"},
		"expired creds": {operator, creds("expired.creds"), "does not accept the credentials", "check queue.credentialsFile"},
		"expired":       {expired, queue.Security{NKeyFile: in("nkey"), TLS: files("ca.pem", "")}, "its certificate has expired", "renew the certificate"},
		"none":          {plain, queue.Security{TLS: files("ca.pem", "")}, "does not accept the credentials", "check queue.credentialsFile, or"},
		"authority":     {plain, queue.Security{NKeyFile: in("nkey"), TLS: files("other.pem", "")}, "its certificate is signed by an unknown authority", "set queue.caFile to a PEM file"},
		"system":        {plain, queue.Security{NKeyFile: in("nkey"), TLS: tlsconfig.Files{Key: "queue"}}, "its certificate is signed by an unknown authority", "set queue.caFile to a PEM file"},
		"name": {
			plain,
			queue.Security{NKeyFile: in("nkey"), TLS: tlsconfig.Files{Key: "queue", CAFile: in("ca.pem"), ServerName: "nats.example"}},
			"its certificate is for another host name", "set queue.serverName",
		},
		"authority of one that verifies clients": {
			mutual,
			queue.Security{NKeyFile: in("nkey"), TLS: files("other.pem", "client")},
			"its certificate is signed by an unknown authority", "set queue.caFile to a PEM file",
		},
		"name of one that verifies clients": {
			mutual,
			queue.Security{NKeyFile: in("nkey"), TLS: tlsconfig.Files{Key: "queue", CAFile: in("ca.pem"), ClientCertFile: in("client.pem"), ClientKeyFile: in("client.key"), ServerName: "nats.example"}},
			"its certificate is for another host name", "set queue.serverName",
		},
		"no client":    {mutual, queue.Security{NKeyFile: in("nkey"), TLS: files("ca.pem", "")}, "client certificate", "set queue.clientCertFile"},
		"other client": {mutual, queue.Security{NKeyFile: in("nkey"), TLS: files("ca.pem", "foreign")}, "client certificate", "queue.clientCertFile"},
		"proxy":        {proxied, queue.Security{TLS: files("ca.pem", "client")}, "", ""},
		"no client of a proxy": {
			proxied,
			queue.Security{TLS: files("ca.pem", "")},
			"as one does that requires a client certificate", "set queue.clientCertFile to a certificate that the server accepts, and its key",
		},
		"other client of a proxy": {
			proxied,
			queue.Security{TLS: files("ca.pem", "foreign")},
			"as one does that refuses the client certificate", "set queue.clientCertFile to a certificate that the server accepts, and its key",
		},
		"no file":     {plain, queue.Security{TLS: files("none", "")}, "queue.caFile: " + in("none") + " cannot be read", "set the path"},
		"not an nkey": {plain, queue.Security{NKeyFile: in("ca.pem"), TLS: files("ca.pem", "")}, "queue.nkeyFile: " + in("ca.pem") + " does not contain the seed of an nkey", ""},
		"rights": {
			limited,
			queue.Security{Username: "tutti", Password: password("right"), TLS: files("ca.pem", "")},
			"does not let this user publish", "grant",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := queue.Config{URL: tt.url, Security: tt.security, StartTimeout: 3 * time.Second}
			found, err := queue.Probe(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			q, err := queue.Connect(t.Context(), cfg)
			if err == nil {
				defer func() {
					if err := q.Close(t.Context()); err != nil {
						t.Error(err)
					}
				}()
			}
			failed := []error{err}
			if name != "rights" { // the check changes nothing, and so cannot find this
				failed = append(failed, found[0].Err)
			}
			for _, err := range failed {
				if (err == nil) != (tt.message == "") || !strings.Contains(core.MessageOf(err), tt.message) || !strings.Contains(core.HintOf(err), tt.hint) {
					t.Errorf("got %q, %q, want %q, %q", core.MessageOf(err), core.HintOf(err), tt.message, tt.hint)
				}
				if strings.Count(core.MessageOf(err), "cannot be used") > 1 || err != nil && strings.Count(err.Error(), tt.message) > 1 {
					t.Errorf("it is said twice: %v", err)
				}
			}
		})
	}
	for name, want := range map[string]string{"": "cannot be used: it requires a client certificate", "foreign": "cannot be used: it refused the client certificate"} {
		t.Run("without an alert "+name, func(t *testing.T) {
			found, err := queue.Probe(t.Context(), queue.Config{URL: verifying, Security: queue.Security{TLS: files("ca.pem", name)}})
			if err != nil || core.MessageOf(found[0].Err) != want || !strings.HasPrefix(core.HintOf(found[0].Err), "set queue.clientCertFile") {
				t.Errorf("got %v, %v, want %q", found, err, want)
			}
		})
	}
	t.Run("while it runs", func(t *testing.T) {
		write("pw", []byte("right-p4ss"))
		write("authority", own.PEM)
		server := serve(pair, false, false)
		lines := make(chan string, 1000)
		q, err := queue.Connect(t.Context(), queue.Config{ // of two servers one has gone
			URL:      server.ClientURL() + ",nats://" + testkit.NewAddress(t),
			Security: queue.Security{Username: "tutti", Password: password("pw"), TLS: files("authority", "")}, Logger: onLine(func(line string) { lines <- line }),
		})
		if err != nil {
			t.Fatal(err)
		}
		disconnect := func() {
			connections, err := server.Connz(nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range connections.Conns {
				_ = server.DisconnectClientByID(c.Cid)
			}
		}
		await := func(want string) {
			t.Helper()
			var err error
			for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
				if err = q.Ready(t.Context()); err == nil && want == "" || err != nil && core.DisplayOf(err) == want {
					return
				}
				if err == nil { // files of TLS are read at most once a second
					disconnect()
				}
			}
			t.Fatalf("got %v, want %q", err, want)
		}
		reasons := map[string]string{
			"pw":        "the server does not accept the credentials; check queue.username and queue.password",
			"authority": "the server cannot be used: its certificate is signed by an unknown authority; set queue.caFile to a PEM file of the authority's certificate",
		}
		await("")
		for file, wrong := range map[string][]byte{"pw": []byte("wrong-p4ss"), "authority": other.PEM} {
			right, err := os.ReadFile(in(file))
			if err != nil {
				t.Fatal(err)
			}
			write(file, wrong)
			want := "the queue is not connected: " + reasons[file]
			await(want)
			for range 100 { // while the one that has gone is tried too
				if err := q.Ready(t.Context()); err == nil || core.DisplayOf(err) != want {
					t.Fatalf("got %v, want %q still", err, want)
				}
				time.Sleep(10 * time.Millisecond)
			}
			write(file, right)
			await("")
		}
		if err := q.Close(t.Context()); err != nil {
			t.Error(err)
		}
		close(lines)
		said := map[string]int{}
		for line := range lines {
			for file, reason := range reasons {
				if strings.Contains(line, "the queue is not connected") && strings.Contains(line, reason) {
					said[file]++
				}
			}
			if strings.Contains(line, "p4ss") {
				t.Errorf("the log has a password: %s", line)
			}
		}
		if said["pw"] != 1 || said["authority"] != 1 {
			t.Errorf("the log says the reasons %v times", said)
		}
	})
}

// closingProxy returns the URL of a proxy with TLS in front of a server, which closes a connection after the handshake unless its client has a
// certificate of an authority.
// Its INFO has fields before those of the server's.
func closingProxy(t *testing.T, server string, pair tls.Certificate, authority *testkit.Authority, fields string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(authority.PEM)
	serve := func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		to, err := net.Dial("tcp", server)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = to.Close() }()
		from := bufio.NewReader(to)
		info, err := from.ReadString('\n')
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, strings.Replace(info, "{", "{"+fields, 1))
		secured := tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12})
		if secured.Handshake() != nil || len(secured.ConnectionState().PeerCertificates) == 0 {
			return
		}
		client := secured.ConnectionState().PeerCertificates[0]
		if _, err := client.Verify(x509.VerifyOptions{Roots: clients, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
			return
		}
		go func() {
			_, _ = io.Copy(to, secured)
			_ = to.Close()
		}()
		_, _ = io.Copy(secured, from)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return "nats://" + l.Addr().String()
}

// anotherSeed returns the seed of an nkey that no server knows.
func anotherSeed(t *testing.T) []byte {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	return seed
}
