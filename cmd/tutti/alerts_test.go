package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAlertsTest: the command shows what each receiver answered, never its URL.
func TestAlertsTest(t *testing.T) {
	t.Parallel()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/s3cret/gone" {
			http.Error(w, "no_service", http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte("ok"))
	}))
	t.Cleanup(receiver.Close)
	host := strings.TrimPrefix(receiver.URL, "http://")
	call := func(alerts string, args ...string) (code int, stdout, stderr string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "tutti.yaml")
		if err := os.WriteFile(file, []byte("repositories: [{code: a, type: local, indexName: a}]\n"+alerts), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, problems bytes.Buffer
		code = run(append([]string{"alerts", "test", "--config", file}, args...), &out, &problems)
		return code, out.String(), problems.String()
	}
	good := fmt.Sprintf("{url: %q, format: slack}", receiver.URL+"/s3cret")
	both := "alerts: [" + good + ", " + fmt.Sprintf("{url: %q}", receiver.URL+"/s3cret/gone") + "]"
	for _, tt := range []struct {
		alerts         string
		args           []string
		code           int
		stdout, stderr string
	}{
		{"alerts: [" + good + "]", nil, 0, "ok      alerts[0] " + host + ": status 200 ok\n", ""},
		{
			both, nil, 1, "ok      alerts[0] " + host + ": status 200 ok\nfailed  alerts[1] " + host + ": status 404: no_service\n",
			"tutti: 1 of 2 receivers did not take the message\n",
		},
		{
			both,
			[]string{"-o", "json"},
			1, `{"results":[{"receiver":"alerts[0] ` + host + `","ok":true,"status":200,"response":"ok"},{"receiver":"alerts[1] ` + host +
				`","ok":false,"status":404,"response":"no_service","error":"status 404: no_service"}]}`,
			"tutti: 1 of 2 receivers did not take the message\n",
		},
		{"", nil, 1, "", "tutti: the configuration names no receiver of alerts\n       set the key alerts\n"},
		{"alerts: [{url: a}]", nil, 1, "", "tutti: alerts[0].url: is not an absolute http or https URL (line 2)\n       such as https://hooks.example.org/tutti\n"},
		{"", []string{"-o", "xml"}, 1, "", "tutti: --output is text or json, not \"xml\"\n"},
	} {
		code, stdout, stderr := call(tt.alerts, tt.args...)
		if len(tt.args) > 1 && tt.args[1] == "json" {
			stdout = strings.Join(strings.Fields(stdout), "")
			tt.stdout = strings.Join(strings.Fields(tt.stdout), "")
		}
		if code != tt.code || stdout != tt.stdout || stderr != tt.stderr {
			t.Errorf("%s %v: exit code %d\n%s%s\nwant %d\n%s%s", tt.alerts, tt.args, code, stdout, stderr, tt.code, tt.stdout, tt.stderr)
		}
	}
}
