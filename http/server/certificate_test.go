package server_test

import (
	"context"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"tutti/http/server"
	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// pair is a certificate with its key, in two files.
type pair struct{ certFile, keyFile string }

// newPair makes files of a certificate for 127.0.0.1 and localhost that is good for a time.
func newPair(t *testing.T, good time.Duration) pair {
	t.Helper()
	p := pair{filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")}
	p.replace(t, good)
	return p
}

// replace writes another certificate and key into the files.
func (p pair) replace(t *testing.T, good time.Duration) {
	t.Helper()
	cert, key, err := testkit.Certificate(time.Now().Add(-time.Hour), time.Now().Add(good), "localhost", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, cert, key)
}

func (p pair) write(t *testing.T, cert, key []byte) {
	t.Helper()
	for file, content := range map[string][]byte{p.certFile: cert, p.keyFile: key} {
		if content == nil {
			continue
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (p pair) read(t *testing.T) (cert, key []byte) {
	t.Helper()
	cert, err := os.ReadFile(p.certFile)
	if err != nil {
		t.Fatal(err)
	}
	if key, err = os.ReadFile(p.keyFile); err != nil {
		t.Fatal(err)
	}
	return cert, key
}

// leaf is the certificate that the files hold.
func (p pair) leaf(t *testing.T) *x509.Certificate {
	t.Helper()
	c, err := server.ReadCertificate(p.certFile, p.keyFile)
	if err != nil {
		t.Fatal(err)
	}
	return c.Leaf
}

// TestReadCertificate: each fault names its file.
func TestReadCertificate(t *testing.T) {
	good, other := newPair(t, time.Hour), newPair(t, time.Hour)
	missing := filepath.Join(t.TempDir(), "none")
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	both := filepath.Join(t.TempDir(), "both")
	cert, key := good.read(t)
	if err := os.WriteFile(both, slices.Concat(cert, key), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		cert, key, message string
	}{
		"good":                {good.certFile, good.keyFile, ""},
		"both in one file":    {both, both, ""},
		"no certificate":      {missing, good.keyFile, missing + " cannot be read: no such file or directory"},
		"no key":              {good.certFile, missing, missing + " cannot be read: no such file or directory"},
		"certificate is text": {text, good.keyFile, text + " is not a certificate: no PEM block begins with -----BEGIN CERTIFICATE-----"},
		"broken certificate":  {broken, good.keyFile, broken + " is not a certificate: "},
		"key is text":         {good.certFile, text, text + " is not a private key: "},
		"key is certificate":  {good.certFile, good.certFile, good.certFile + " is not a private key: "},
		"certificate is key":  {good.keyFile, good.keyFile, good.keyFile + " is not a certificate: "},
		"another's key":       {good.certFile, other.keyFile, "the key in " + other.keyFile + " is not that of the certificate in " + good.certFile},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := server.ReadCertificate(tc.cert, tc.key)
			if tc.message == "" {
				if err != nil || strings.Join(server.CertificateNames(c), " ") != "localhost 127.0.0.1" {
					t.Errorf("%v, %v", c, err)
				}
				return
			}
			if core.CodeOf(err) != core.CodeInvalid || !strings.HasPrefix(core.MessageOf(err), tc.message) || core.HintOf(err) == "" {
				t.Errorf("got %v, want %q", err, tc.message)
			}
			if _, again := server.NewCertificate(t.Context(), tc.cert, tc.key, nil, nil); core.MessageOf(again) != core.MessageOf(err) {
				t.Errorf("NewCertificate: %v", again)
			}
		})
	}
}

// TestCertificateFollowsItsFiles: a pair that was replaced is used, one that cannot be used leaves the one before in use, and the log and
// the metrics say so once for each change.
func TestCertificateFollowsItsFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, 90*24*time.Hour)
		reg := prometheus.NewRegistry()
		var log testkit.Buffer
		seen := 0
		c, err := server.NewCertificate(t.Context(), p.certFile, p.keyFile, slog.New(slog.NewTextHandler(&log, nil)), server.NewMetrics(reg))
		if err != nil {
			t.Fatal(err)
		}
		first := p.leaf(t)
		look := func() { // as often as the files may be read within a minute
			t.Helper()
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		// says are what the one line has in it that is logged; none for no line.
		want := func(what string, leaf *x509.Certificate, used, refused int, says ...string) {
			t.Helper()
			look()
			if got := c.Current().Leaf; !got.Equal(leaf) {
				t.Errorf("%s: the certificate in use is %s", what, got.SerialNumber)
			}
			for metric, value := range map[string]int{"used": used, "refused": refused} {
				if got := metricOf(t, reg, "tutti_tls_certificate_reloads_total", metric); got != float64(value) {
					t.Errorf("%s: %v are %s, want %d", what, got, metric, value)
				}
			}
			if got := metricOf(t, reg, "tutti_tls_certificate_expiry_timestamp_seconds", ""); got != float64(leaf.NotAfter.Unix()) {
				t.Errorf("%s: the metric says it expires at %v", what, got)
			}
			logged := log.String()[seen:]
			seen += len(logged)
			if got := strings.Count(logged, "\n"); got != min(len(says), 1) {
				t.Errorf("%s: logged %d lines:\n%s", what, got, logged)
			}
			for _, text := range says {
				if !strings.Contains(logged, text) {
					t.Errorf("%s: not logged: %s\n%s", what, text, logged)
				}
			}
		}
		want("at start", first, 0, 0, "level=INFO msg=\"certificate in use\"")

		p.replace(t, 5*24*time.Hour)
		second := p.leaf(t)
		want("replaced by one that ends soon", second, 1, 0, "level=WARN msg=\"certificate in use\"")

		cert, key := p.read(t)
		_, foreignKey := newPair(t, time.Hour).read(t)
		p.write(t, nil, foreignKey)
		want("another's key", second, 1, 1, "level=ERROR", "is not that of the certificate")
		p.write(t, []byte("nonsense"), nil)
		want("no certificate", second, 1, 2, "level=ERROR", "is not a certificate")
		if err := os.Remove(p.certFile); err != nil {
			t.Fatal(err)
		}
		want("removed", second, 1, 3, "level=ERROR", "cannot be read")
		p.write(t, cert, key)
		want("as before", second, 2, 3, "level=WARN")
		p.replace(t, 90*24*time.Hour)
		want("replaced", p.leaf(t), 3, 3, "level=INFO")

		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		last := c.Current().Leaf
		p.replace(t, time.Hour)
		want("after the stop", last, 3, 3)
		if err := c.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
			t.Error(problems, err)
		}
	})
}

// metricOf is the value of a metric that has at most one label, whose value is given.
func metricOf(t *testing.T, reg *prometheus.Registry, name, label string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && (len(m.GetLabel()) == 0 || m.GetLabel()[0].GetValue() == label) {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("there is no %s with %q", name, label)
	return 0
}
