package check_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tutti/internal/app/check"
	"tutti/internal/tools/testkit"
)

func TestCertificate(t *testing.T) {
	const day = 24 * time.Hour
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	issued := func(name string, from, until time.Duration, hosts ...string) (cert, key string) {
		c, k, err := testkit.Certificate(time.Now().Add(from), time.Now().Add(until), hosts...)
		if err != nil {
			t.Fatal(err)
		}
		return file(name+".crt", c), file(name+".key", k)
	}
	goodCert, goodKey := issued("good", -day, 90*day, "a.example", "127.0.0.1")
	_, otherKey := issued("other", -day, 90*day, "a.example")
	soonCert, soonKey := issued("soon", -day, 13*day, "a.example")
	lateCert, lateKey := issued("late", -2*day, -day, "a.example")
	earlyCert, earlyKey := issued("early", day, 2*day, "a.example")
	namelessCert, namelessKey := issued("nameless", -day, 90*day)
	for name, tt := range map[string]struct{ cert, key, want string }{
		"good":          {goodCert, goodKey, "ok: *good.crt is valid for a.example, 127.0.0.1 and expires at *Z"},
		"ends soon":     {soonCert, soonKey, "warn: *soon.crt is valid for a.example and expires at *Z -> renew the certificate*"},
		"expired":       {lateCert, lateKey, "fail: *late.crt expired at *Z -> renew the certificate*"},
		"not yet valid": {earlyCert, earlyKey, "fail: *early.crt is not valid before *Z -> check the clock of this machine, or wait"},
		"no names":      {namelessCert, namelessKey, "fail: *nameless.crt is valid for no host*-> request a certificate with the names that clients use"},
		"another's key": {goodCert, otherKey, "fail: the key in *other.key is not that of the certificate in *good.crt -> *"},
		"missing":       {goodCert, filepath.Join(dir, "none"), "fail: *none cannot be read: no such file or directory -> *"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := parse(t, fmt.Sprintf("dataDir: %q\nserver: {tls: {certFile: %q, keyFile: %q}}", t.TempDir(), tt.cert, tt.key))
			wantLines(t, of(check.Run(t.Context(), cfg, check.Options{}), "server.tls"), tt.want)
		})
	}
	if got := of(check.Run(t.Context(), parse(t, fmt.Sprintf("dataDir: %q", t.TempDir())), check.Options{}), "server.tls"); len(got) > 0 {
		t.Errorf("without TLS: %v", got)
	}
}
