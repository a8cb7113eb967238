package federation_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tutti/internal/core"
	"tutti/internal/search/catalogue/definition"
	"tutti/internal/search/federation"
)

const (
	apolloOff = `{"errors":[{"message":"GraphQL introspection is not allowed by Apollo Server, but the query contained __schema or __type. To enable introspection, pass introspection: true to ApolloServer in production","locations":[{"line":1,"column":2}],"extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}`
	tuttiOff  = `{"errors":[{"message":"not here","extensions":{"code":"GRAPHQL_VALIDATION_FAILED","validationErrorCode":"INTROSPECTION_DISABLED"}}]}`
	otherOff  = `{"data":null,"errors":[{"message":"Cannot query field \"__type\" on type \"Query\".","extensions":{"code":"GRAPHQL_VALIDATION_FAILED"}}]}`
)

// one is a network of one remote node.
func one(members string) definition.Definition {
	return defined(`{"remoteNodes":[{"displayName":"A","nodeId":"a",` + members + `}]}`)
}

const good = `"documentType":"file","graphqlUrl":"http://user:pass@a.example/graphql?key=s3cret%2Dkey"`

// TestErrorsOfNodes: errors of a remote node are reported the same by Probe and by Query.
func TestErrorsOfNodes(t *testing.T) {
	for name, c := range map[string]struct {
		config  string
		remote  http.Handler
		code    core.Code
		message string
		hint    string
		reason  string // which clients do not see
	}{
		"Apollo without introspection": {good, says(400, apolloOff), core.CodeUnsupported, "does not allow GraphQL introspection, by which its fields are discovered; the next discovery is when this server restarts", `set "disableGraphQLIntrospection": false in the base.json of the node's catalogue and restart it, then restart this server`, ""},
		"tutti without introspection":  {good, says(400, tuttiOff), core.CodeUnsupported, "does not allow GraphQL introspection, by which its fields are discovered; the next discovery is when this server restarts", `set "disableGraphQLIntrospection": false in the base.json of the node's catalogue and restart it, then restart this server`, ""},
		"another without it":           {good, says(200, otherOff), core.CodeUnsupported, "does not allow GraphQL introspection, by which its fields are discovered; the next discovery is when this server restarts", `set "disableGraphQLIntrospection": false in the base.json of the node's catalogue and restart it, then restart this server`, ""},
		"no such type":                 {good, says(200, `{"data":{"__type":null}}`), core.CodeUpstream, "has no type fileAggregations", "set documentType to the name of the node's root field, and check that the node allows GraphQL introspection", ""},
		"no such field":                {good, says(200, `{"data":{}}`), core.CodeUpstream, "responded without the requested data", "", ""},
		"an odd type":                  {good, says(200, `{"data":{"__type":{"fields":"many"}}}`), core.CodeUpstream, "responded with something other than the fields of a type", "", ""},
		"bad credentials":              {good, says(401, `{}`), core.CodeUnauthenticated, "rejected the query with status 401: credentials are missing or invalid", "the fields of a node are requested without a token: add an access.json to the node's catalogue, or set auth.defaultAccess: public there", ""},
		"not permitted":                {good, says(403, `<html>`), core.CodeForbidden, "rejected the query with status 403: the caller is not permitted", "", ""},
		"unauthenticated in GraphQL":   {good, says(200, `{"data":null,"errors":[{"message":"log in first","extensions":{"code":"UNAUTHENTICATED"}}]}`), core.CodeUnauthenticated, "log in first", "", ""},
		"forbidden in GraphQL":         {good, says(200, `{"data":null,"errors":[{"message":"never","extensions":{"code":"FORBIDDEN"}}]}`), core.CodeForbidden, "never", "", ""},
		"an error with an address":     {good, says(200, `{"data":null,"errors":[{"message":"see http://b.example","extensions":{"code":"BAD_USER_INPUT"}}]}`), core.CodeUpstream, "internal error of the node: BAD_USER_INPUT", "", ""},
		"an error with its parameter":  {good, says(200, `{"data":null,"errors":[{"message":"no such key s3cret-key","extensions":{"code":"BAD_USER_INPUT"}}]}`), core.CodeUpstream, "internal error of the node: BAD_USER_INPUT", "", ""},
		"an error with its user":       {good, says(200, `{"data":null,"errors":[{"message":"user user is unknown","extensions":{"code":"BAD_USER_INPUT"}}]}`), core.CodeUpstream, "internal error of the node: BAD_USER_INPUT", "", ""},
		"an error with its host":       {good, says(200, `{"data":null,"errors":[{"message":"a.example says no","extensions":{"code":"BAD_USER_INPUT"}}]}`), core.CodeUpstream, "internal error of the node: BAD_USER_INPUT", "", ""},
		"an error with an odd code":    {good, says(200, `{"data":null,"errors":[{"message":"no","extensions":{"code":"a.example"}}]}`), core.CodeUpstream, "internal error of the node", "", ""},
		"too much to do":               {good, says(429, ``), core.CodeOverloaded, "responded with status 429: it is overloaded", "", ""},
		"a bad gateway":                {good, says(502, `{"data":{"__type":null}}`), core.CodeUnavailable, "responded with status 502", "", ""},
		"a page":                       {good, says(200, `<html>`), core.CodeUnavailable, "responded with status 200 and something that is not GraphQL", "", ""},
		"half an answer":               {good, says(200, `{"data":{"__type":`), core.CodeUnavailable, "responded with status 200 and something that is not GraphQL", "", ""},
		"a problem":                    {good, says(404, `{"status":404}`), core.CodeUnavailable, "responded with status 404 and something that is not GraphQL", "", ""},
		"another place":                {good, says(302, ``), core.CodeUpstream, "responded with status 302, and redirects to other hosts are not followed", "", ""},
		"a huge answer":                {good, says(200, `{"data":{"x":"`+strings.Repeat("x", 2000)+`"}}`), core.CodeTooLarge, "responded with more than 1000 bytes", "", ""},
		"no answer":                    {good, hangs(), core.CodeUnavailable, "timed out after 10s", "", ""},
		"unreachable":                  {good, nil, core.CodeUnavailable, "could not be reached", "", ": dial tcp: a.example: connection refused"},
		"no documentType":              {`"graphqlUrl":"http://a.example"`, nil, core.CodeInvalid, "the configuration of this node lacks documentType", "set it in network.remoteNodes of the catalogue", ""},
		"nothing at all":               {`"displayName":"","nodeId":"A"`, nil, core.CodeInvalid, "the configuration of this node lacks displayName, documentType, graphqlUrl", "set it in network.remoteNodes of the catalogue", ""},
		"a documentType with dashes":   {`"documentType":"a-b","graphqlUrl":"http://a.example"`, nil, core.CodeInvalid, "the documentType configured for this node is not a GraphQL name", "set it to the name of the root field in the node's GraphQL schema", ""},
		"a documentType for itself":    {`"documentType":"__a","graphqlUrl":"http://a.example"`, nil, core.CodeInvalid, "the documentType configured for this node is not a GraphQL name", "set it to the name of the root field in the node's GraphQL schema", ""},
		"a file":                       {`"documentType":"a","graphqlUrl":"file:///etc/passwd"`, nil, core.CodeInvalid, "the graphqlUrl configured for this node is not the URL of an HTTP server", "set graphqlUrl to an address that begins with http:// or https:// and a host", ""},
		"no URL":                       {`"documentType":"a","graphqlUrl":"http://%zz"`, nil, core.CodeInvalid, "the graphqlUrl configured for this node is not the URL of an HTTP server", "set graphqlUrl to an address that begins with http:// or https:// and a host", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := hosts{}
				if c.remote != nil {
					h["a.example"] = c.remote
				}
				d, cfg := one(c.config), federation.Config{Transport: h, MaxBytes: 1000}
				probed := federation.Probe(t.Context(), d, cfg)
				if len(probed) != 1 || probed[0].Node != "A" || core.CodeOf(probed[0].Err) != c.code || core.MessageOf(probed[0].Err) != c.message+c.reason || core.HintOf(probed[0].Err) != c.hint {
					t.Errorf("probed %+v", probed)
				}
				f := begun(t, d, cfg)
				if c.message == "timed out after 10s" {
					time.Sleep(10 * time.Second)
					synctest.Wait()
				}
				answer := f.ask(t, request("", "sex.buckets"))
				if len(answer.Nodes) != 1 || answer.Nodes[0].Status != "ERROR" || answer.Nodes[0].Hits != 0 || answer.Nodes[0].Errors != c.message {
					t.Errorf("answered %+v", answer.Nodes)
				}
				if federated, fields := f.Membership(f.view.Model()); !federated || len(fields) != 0 {
					t.Errorf("fields %v", fields)
				}
			})
		})
	}
}

// TestDiscoveryIntervals: unavailable nodes are retried with increasing pauses, invalid responses at the normal interval, and
// nodes without introspection never.
func TestDiscoveryIntervals(t *testing.T) {
	fields := typeAnswer(map[string]string{"sex": "Aggregations"})
	bad := func(n int, handler http.Handler) []http.Handler { return slices.Repeat([]http.Handler{handler}, n) }
	for name, c := range map[string]struct {
		answers []http.Handler
		random  float64
		want    []float64
		node    string
	}{
		"bad gateways, then well": {append(bad(8, says(502, "")), says(200, fields)), 0, []float64{0, 1, 3, 7, 15, 31, 63, 123, 183, 483, 783}, ""},
		"with jitter":             {bad(9, says(502, "")), 0.5, []float64{0, 0.9, 2.7, 6.3, 13.5, 27.9, 56.7, 110.7, 164.7, 218.7, 272.7, 326.7, 380.7, 434.7, 488.7, 542.7, 596.7, 650.7, 704.7, 758.7, 812.7, 866.7}, "responded with status 502"},
		"hanging":                 {append(bad(2, hangs()), says(200, fields)), 0, []float64{0, 11, 23, 323, 623}, ""},
		"refused, then well":      {append(bad(2, says(403, "")), says(200, fields)), 0, []float64{0, 1, 3, 303, 603}, ""},
		"no introspection":        {append(bad(1, says(400, apolloOff)), says(200, fields)), 0, []float64{0}, "does not allow GraphQL introspection, by which its fields are discovered; the next discovery is when this server restarts"},
		"unreached, then none":    {append(bad(1, says(502, "")), says(400, apolloOff)), 0, []float64{0, 1}, "does not allow GraphQL introspection, by which its fields are discovered; the next discovery is when this server restarts"},
		"well, then worse":        {[]http.Handler{says(200, fields), says(502, ""), says(502, ""), says(400, apolloOff)}, 0, []float64{0, 300, 301, 303, 603}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var at []float64
				serve := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					if err != nil || !bytes.Contains(body, []byte("__type")) {
						io.WriteString(w, `{"data":{"file":{"hits":{"total":1}}}}`)
						return
					}
					c.answers[min(len(at), len(c.answers)-1)].ServeHTTP(w, r)
					at = append(at, time.Since(start).Seconds())
				})
				// A call that hangs is recorded when it ends.
				begin := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r) })
				f := begun(t, one(good), federation.Config{Transport: hosts{"a.example": begin}, Random: func() float64 { return c.random }})
				time.Sleep(time.Until(start.Add(900 * time.Second)))
				synctest.Wait()
				if name == "hanging" {
					for i := range 2 {
						at[i] -= 10
					}
				}
				if fmt.Sprintf("%.1f", at) != fmt.Sprintf("%.1f", until(c.want, 900)) {
					t.Errorf("asked at %v, want %v", at, c.want)
				}
				answer := f.ask(t, request(""))
				if got := answer.Nodes[0].Errors; got != c.node {
					t.Errorf("the node says %q, want %q", got, c.node)
				}
			})
		})
	}
}

// until goes on with the last pause of times.
func until(times []float64, end float64) []float64 {
	times = slices.Clone(times)
	for n := len(times); n > 1; n = len(times) {
		next := times[n-1] + 300
		if next > end || times[n-1]-times[n-2] != 300 {
			break
		}
		times = append(times, next)
	}
	return times
}

// TestChanges: Config.Changed is called only when the fields of remote nodes change.
func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &remote{fields: map[string]string{"sex": "Aggregations", "age": "NumericAggregations", "__x": "Aggregations", "a b": "Aggregations", "sub": "Donor"}}
		c := &remote{fields: map[string]string{"sex": "NumericAggregations"}}
		var mu sync.Mutex
		var told []string
		var log bytes.Buffer
		f := begun(t, defined(twoNodes), federation.Config{
			Transport: hosts{"a.example": a, "c.example": c}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Changed: func(id string) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, id)
			},
		})
		if _, fields := f.Membership(f.view.Model()); len(fields) != 2 || fields["sex"] != "NumericAggregations" || fields["age"] != "NumericAggregations" {
			t.Errorf("fields %v", fields)
		}
		if want := []string{"c", "c"}; !slices.Equal(told, want) {
			t.Errorf("told of %v, want %v", told, want)
		}
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		if len(told) != 2 {
			t.Errorf("told of %v although nothing changed", told)
		}
		a.has(map[string]string{"sex": "Aggregations"})
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if _, fields := f.Membership(f.view.Model()); len(fields) != 1 || len(told) != 3 {
			t.Errorf("fields %v, told of %v", fields, told)
		}
		if n := strings.Count(log.String(), "\n"); n != 3 || strings.Contains(log.String(), ".example") {
			t.Errorf("logged %s", log.String())
		}
	})
}

// TestConfigurations: which configurations are a federation.
func TestConfigurations(t *testing.T) {
	for name, c := range map[string]struct {
		network   string
		federated bool
		nodes     string
	}{
		"none":               {"", false, ""},
		"null":               {"null", false, ""},
		"no remote nodes":    {`{"localNode":{"displayName":"B"},"remoteNodes":[]}`, false, ""},
		"texts for objects":  {`{"localNode":"","remoteRequests":"","remoteNodes":["",{"nodeId":"a","requests":""}]}`, true, "a remote node 1"},
		"a template":         {`{"localNode":{"displayName":"","nodeId":""},"remoteNodes":[{"displayName":"","documentType":"","graphqlUrl":"","nodeId":""}]}`, true, "c remote node 1"},
		"one name for all":   {`{"remoteNodes":[{"displayName":"X"},{"displayName":"X"},{"displayName":"X 2"}]}`, true, "X X X 2"},
		"sorted by the name": {`{"localNode":{"displayName":"M"},"remoteNodes":[{"displayName":"Z"},{"displayName":"A"}]}`, true, "A M Z"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := begun(t, defined(c.network), federation.Config{Transport: hosts{}})
				if federated, _ := f.Membership(f.view.Model()); federated != c.federated {
					t.Fatalf("federated is %t", federated)
				}
				answer, err := f.Query(t.Context(), f.view, request(`{"data":{"file":{"hits":{"total":1}}}}`))
				if !c.federated {
					if core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) != "this catalogue is not part of a network" {
						t.Errorf("got %v", err)
					}
					return
				}
				var names []string
				for _, n := range answer.Nodes {
					names = append(names, n.Name)
				}
				if got := strings.Join(names, " "); err != nil || got != c.nodes {
					t.Errorf("nodes %q (%v), want %q", got, err, c.nodes)
				}
			})
		})
	}
}

// TestFixedConfiguration: a catalogue whose configuration has changed has the new nodes, and the old ones are released.
func TestFixedConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		count := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			asked++
			w.WriteHeader(http.StatusBadGateway)
		})
		fresh := &remote{fields: map[string]string{"sex": "Aggregations"}}
		f := begun(t, one(good), federation.Config{Transport: hosts{"a.example": count, "b.example": fresh}})
		if asked != 1 {
			t.Fatalf("asked %d times", asked)
		}
		fixed := model(t, one(`"documentType":"file","graphqlUrl":"http://b.example"`))
		if federated, _ := f.Membership(fixed); !federated {
			t.Error("no network after the fix")
		}
		synctest.Wait()
		if _, fields := f.Membership(fixed); fields["sex"] != "Aggregations" {
			t.Errorf("fields %v", fields)
		}
		time.Sleep(time.Hour)
		if asked != 1 {
			t.Errorf("asked the old node %d times", asked)
		}
		if federated, _ := f.Membership(model(t, defined(""))); federated {
			t.Error("a network without a configuration")
		}
	})
}

func TestStartAndStop(t *testing.T) {
	f := federation.New(nil, federation.Config{})
	stop(t, f)
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := f.Start(t.Context()); core.CodeOf(err) != core.CodeConflict || core.MessageOf(err) != "the federation has been started before" {
		t.Errorf("got %v", err)
	}
	stop(t, f)
	stop(t, f)
}

// TestRedirects: redirects are followed only within the host.
func TestRedirects(t *testing.T) {
	other := httptest.NewServer(says(200, typeAnswer(nil)))
	defer other.Close()
	mux := http.NewServeMux()
	mux.Handle("/here", says(200, typeAnswer(map[string]string{"sex": "Aggregations"})))
	redirect := func(to string, status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, status) }
	}
	mux.Handle("/moved", redirect("/here", http.StatusPermanentRedirect))
	mux.Handle("/get", redirect("/here", http.StatusFound))
	mux.Handle("/away", redirect(other.URL, http.StatusTemporaryRedirect))
	mux.Handle("/round", redirect("/round", http.StatusTemporaryRedirect))
	server := httptest.NewServer(mux)
	defer server.Close()
	for path, want := range map[string]string{
		"/here": "", "/moved": "",
		"/get":   "responded with status 302, and redirects to other hosts are not followed",
		"/away":  "responded with status 307, and redirects to other hosts are not followed",
		"/round": "responded with status 307, and redirects to other hosts are not followed",
	} {
		probed := federation.Probe(t.Context(), one(`"documentType":"file","graphqlUrl":"`+server.URL+path+`"`), federation.Config{})
		if want == "" {
			if probed[0].Err != nil || probed[0].Fields != 1 {
				t.Errorf("%s: %+v", path, probed)
			}
		} else if core.CodeOf(probed[0].Err) != core.CodeUpstream || core.MessageOf(probed[0].Err) != want {
			t.Errorf("%s: %+v", path, probed)
		}
	}
}
