package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"tutti/internal/app/check"
	"tutti/internal/config"
)

// refusingServer answers as answersOfServices, or, while status is set, refuses each request with it as a server of tokens refuses its client.
type refusingServer struct {
	*httptest.Server
	status atomic.Int64
}

func newRefusingServer(t *testing.T, keys string, status int64) *refusingServer {
	t.Helper()
	s := &refusingServer{}
	s.status.Store(status)
	right := answersOfServices(t, keys)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := int(s.status.Load())
		if status == 0 {
			right.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(status)
		if status == http.StatusUnauthorized {
			_, _ = w.Write([]byte(`{"error":"invalid_client","said":"` + r.Header.Get("Authorization") + `"}`))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// awaitOnly waits until /ready, which stays ready, has the reasons want that name a key, and no other.
func (w *world) awaitOnly(want ...string) {
	w.t.Helper()
	w.eventually(wait, func() (bool, string) {
		a := w.ready()
		var got []string
		for _, r := range a.get("reasons").Array() {
			if !strings.HasPrefix(r.String(), "repository ") { // not indexed yet
				got = append(got, r.String())
			}
		}
		return a.status == http.StatusOK && slices.Equal(got, want), string(a.raw) + fmt.Sprintf("\nwant %q", want)
	})
}

// TestRefusedCredentials: while servers refuse the credentials, or answer as for a wrong address, /ready, the log and tutti check say so with the
// key to change; tutti stays ready, and the reasons end when the servers accept requests, also without another request by a client.
func TestRefusedCredentials(t *testing.T) {
	t.Parallel()
	for status, wants := range map[int64][]string{
		http.StatusUnauthorized: {
			"auth.introspection: it rejects the credentials with status 401; check auth.introspection.clientId and clientSecret",
			"auth.jwt: it rejects the credentials with status 401; check auth.jwt.jwksUrl",
			"schemas.externalValidations: it rejects the credentials with status 401; check schemas.externalValidations.clientCertFile and the url of the validation",
			"schemas.storage: it rejects the credentials with status 401; check schemas.storage.token",
			"tracing: it rejects the credentials with status 401; check tracing.headers",
		},
		http.StatusNotFound: {
			"auth.introspection: it answers with status 404; check auth.introspection.url",
			"auth.jwt: it answers with status 404; check auth.jwt.jwksUrl",
			"schemas.storage: it answers with status 404; check schemas.storage.url",
			"tracing: it answers with status 404; check tracing.endpoint",
		},
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			s := newRefusingServer(t, `{"keys":[`+newSigner(t, "k").form+`]}`, status)
			b := newBuiltIn(t, plan{more: strings.NewReplacer("$URL", s.URL, "$HOST", strings.TrimPrefix(s.URL, "http://"), "$SECRET", securedSecret).Replace(
				"auth: {mode: token, jwt: {jwksUrl: '$URL/keys', issuer: '$URL', audience: tutti}, introspection: {url: '$URL/introspection', clientId: c, clientSecret: $SECRET}}\n" +
					"schemas: {storage: {url: '$URL/score', token: $SECRET}, externalValidations: {allowedHosts: ['$HOST']}, " +
					"defaultOptions: {externalValidations: [{url: '$URL/values/{value}', jsonPath: '$.experiment.donors[*].id'}]}}\n" +
					"tracing: {endpoint: '$URL', headers: Authorization=$SECRET}\n")})
			_, b.token = b.firstKey("tutti.WRITE")
			b.startReady()
			b.prepareStudies("S1")
			b.mustSendAs("opaque", http.MethodPost, "/studies/S1", "", http.StatusServiceUnavailable)
			b.registerExternalType("donors", s.URL+"/values/{value}")
			a := b.mustSend(http.MethodPost, "/submit/S1", b.donors("donors", "DO1"), http.StatusBadRequest)
			if said := string(a.raw); strings.Contains(said, "could not be checked") != (status == http.StatusUnauthorized) {
				t.Errorf("submitting: %s", said)
			}
			id := b.submit("S1")
			b.mustSend(http.MethodPut, statePath("S1", "publish", id), "", http.StatusBadGateway)
			b.awaitOnly(wants...)
			for component, key := range map[string]string{"auth": "check auth.introspection.", "tracing": "check tracing."} {
				b.awaitSaid(component, key)
			}
			b.awaitSaid("auth", "check auth.jwt.jwksUrl")
			cfg, err := config.Parse([]byte(b.yaml()), nil)
			if err != nil {
				t.Fatal(err)
			}
			report, err := json.Marshal(check.Run(t.Context(), cfg, check.Options{}))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range wants {
				if _, hint, _ := strings.Cut(want, "; "); !strings.Contains(string(report), hint) && !strings.Contains(hint, "tracing") {
					t.Errorf("tutti check does not say %q: %s", hint, report)
				}
			}
			if shown := strings.Join(b.logs.all(), "\n") + string(b.ready().raw) + string(report); strings.Contains(shown, securedSecret) {
				t.Error("a secret is shown")
			}
			s.status.Store(0)
			b.awaitOnly()
		})
	}
}

// TestRefusedAlertsHeal: an alert whose credentials are refused is sent once they are accepted.
func TestRefusedAlertsHeal(t *testing.T) {
	t.Parallel()
	r := &alertReceiver{t: t, status: http.StatusOK}
	refusing := &atomic.Bool{}
	refusing.Store(true)
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		if refusing.Load() {
			rw.WriteHeader(http.StatusForbidden)
			return
		}
		r.ServeHTTP(rw, req)
	}))
	t.Cleanup(s.Close)
	w := startWorld(t, settings{more: "alerts: [{url: '" + s.URL + "/" + securedSecret + "', secret: " + alertSecret + "}]\n"})
	w.reject("S1", 1)
	const why = "it rejects the credentials with status 403"
	w.awaitSaid("alerts", why)
	w.awaitOnly("alerts[0]: " + why + "; check alerts[0].url, token and secret")
	refusing.Store(false)
	r.await(w, "dead_letters 1")
	w.awaitOnly()
	if logs := strings.Join(w.logs.all(), ""); strings.Contains(logs, alertSecret) || strings.Contains(logs, securedSecret) {
		t.Error("the log shows a secret")
	}
}

// TestFederationInReady: a remote node that rejects queries, or cannot be reached, is a reason of /ready until it takes queries.
func TestFederationInReady(t *testing.T) {
	t.Parallel()
	s := newRefusingServer(t, "", http.StatusUnauthorized)
	here, _ := node(t, "H1", 1, remoteNode(s.URL, ""), "")
	here.awaitOnly("catalogue nodes, network.remoteNodes[0]: rejected the query with status 401: credentials are missing or invalid; the fields of a node are requested " +
		"without a token: add an access.json to the node's catalogue, or set auth.defaultAccess: public there")
	s.status.Store(0)
	here.awaitOnly()
	here.network(`"name":"there","hits":3,"status":"OK"`)

	secured := newSecuredServers(t, answersOfServices(t, ""))
	there, _ := node(t, "H2", 1, remoteNode(secured.right.URL, secured.client("other.pem")), "")
	there.awaitOnly("catalogue nodes, network.remoteNodes[0]: its certificate is signed by an unknown authority; " +
		"set network.remoteNodes[0].caFile to a PEM file of the authority's certificate")
	secured.replace("other.pem")
	there.awaitOnly()
}
