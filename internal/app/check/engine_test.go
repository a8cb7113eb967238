package check_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tutti/internal/app/check"
	"tutti/internal/tools/testkit"
)

// routes is an Elasticsearch that answers each "METHOD path" with a status and a body. A path that it lacks is a 404 in
// the engine's words.
type routes map[string]struct {
	status int
	body   string
}

func (r routes) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if root := r["GET /"].body; !strings.HasPrefix(root, "<") && !strings.Contains(root, "opensearch") {
		w.Header().Set("X-Elastic-Product", "Elasticsearch")
	}
	searches := strings.HasSuffix(req.URL.Path, "/_pit") || req.URL.Path == "/_search" || strings.HasSuffix(req.URL.Path, "/_count") ||
		req.URL.Path == "/_index_template/_simulate"
	if req.Method != http.MethodGet && req.Method != http.MethodHead && req.URL.Path != "/_security/user/_has_privileges" && !searches {
		http.Error(w, "tutti check must not write", http.StatusTeapot)
		return
	}
	path := req.Method + " " + req.URL.Path
	if body, _ := io.ReadAll(req.Body); strings.Contains(string(body), `"nested"`) && r[path+" nested"].status != 0 {
		path += " nested"
	}
	route, ok := r[path]
	if !ok {
		route.status, route.body = http.StatusNotFound, `{"error":{"type":"index_not_found_exception","reason":"no such index"},"status":404}`
	}
	w.WriteHeader(route.status)
	_, _ = io.WriteString(w, route.body)
}

// searchAnswer is the answer to a search, with the number of its hits, and these.
const searchAnswer = `{"pit_id":"p","took":1,"timed_out":false,"_shards":{"total":1,"successful":1,"skipped":0,"failed":0},"hits":{"total":{"value":%d,"relation":"eq"},"max_score":null,"hits":[%s]}}`

// Hints that name the rights on each engine.
const (
	elasticsearchRights = "grant the user's role the privileges monitor on the cluster, and manage, read, write on each indexName and indexName-*"
	openSearchRights    = "grant the user's role the privileges cluster:monitor/main, *, indices:data/write/bulk, * on the cluster, and indices_all on each indexName and indexName-*"
)

const rootAnswer = `{"name":"n","cluster_name":"c1","version":{"number":"%s","build_flavor":"default"},"tagline":"You Know, for Search"}`

// nodesAnswer is what a node without GET / answers at nodesPath.
const (
	nodesPath   = "GET /_nodes/_local/http"
	nodesAnswer = `{"cluster_name":"c1","nodes":{"ga_0UkLfRImsLUSoOR5gjg":{"version":"%s"}}}`
)

// healthy is an Elasticsearch as it should be, with changes.
func healthy(changes routes) routes {
	r := routes{
		"GET /":                {200, fmt.Sprintf(rootAnswer, "8.19.2")},
		"GET /_cluster/health": {200, `{"cluster_name":"c1","status":"yellow","unassigned_shards":1}`},
		"GET /_license":        {200, `{"license":{"status":"active","type":"basic"}}`},
		"GET /a/_alias":        {200, `{"a-20260101000000":{"aliases":{"a":{"is_write_index":true}}}}`},
		"POST /a/_count":       {200, `{"count":5}`},
		"POST /_security/user/_has_privileges": {
			200,
			`{"index":{"a":{"read":true,"write":true,"manage":true},"a-*":{"read":true,"write":true,"manage":true}}}`,
		},
		"POST /donor_centric/_pit": {200, `{"id":"p"}`},
		"POST /file_centric/_pit":  {200, `{"id":"p"}`},
		"DELETE /_pit":             {200, `{"succeeded":true,"num_freed":1}`},
		"POST /_search":            {200, fmt.Sprintf(searchAnswer, 0, "")},
	}
	for path, answer := range changes {
		if answer.status == 0 {
			delete(r, path)
		} else {
			r[path] = answer
		}
	}
	return r
}

// TestRefusedSignature: a domain that refuses a signed request is named with what a signature depends on.
func TestRefusedSignature(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
	domain := httptest.NewServer(healthy(routes{"GET /": {403, `{"message":"The request signature we calculated does not match the signature you provided."}`}}))
	t.Cleanup(domain.Close)
	report := check.Run(t.Context(), builtInConfig(t, t.TempDir(), fmt.Sprintf("index: {url: %q, aws: {region: eu-west-1}}", domain.URL)), check.Options{})
	wantLines(t, of(report, "index"), "fail: 127.0.0.1:* refused a signed request -> check index.aws, the credentials, this machine's clock, and the access policy of the domain")
}

func TestElasticsearch(t *testing.T) {
	upstream := song(t, testkit.SongConfig{}, "S1")
	look := func(t *testing.T, index string) check.Report {
		return check.Run(t.Context(), parse(t, fmt.Sprintf(
			"dataDir: %q\nindex: {%s}\nrepositories: [{code: a, type: song, indexName: a, url: %q}]", t.TempDir(), index, upstream.URL())), check.Options{})
	}
	const password = ", username: elastic, password: s3cret"
	right := "ok: 127.0.0.1:* is Elasticsearch 8.19.2, cluster c1"
	for name, tt := range map[string]struct {
		changes routes
		members string
		index   []string // findings of the index
		alias   []string // findings of the alias
	}{
		"right": {nil, password, []string{right, "ok: the cluster is yellow"}, []string{"ok: the alias points to a-20260101000000"}},
		"a version with a known defect": {
			routes{"GET /": {200, `{"cluster_name":"c1","version":{"number":"9.5.2"},"tagline":"You Know, for Search"}`}},
			"",
			[]string{"warn: 127.0.0.1:* has a defect: Elasticsearch 9.5.2 may apply *; upgrade it to 9.5.3 or later", "ok: the cluster is yellow"},
			[]string{"ok: the alias points to a-20260101000000"},
		},
		"another node with a known defect": {
			routes{"GET /_nodes/_all/http": {200, `{"nodes":{"a":{"version":"8.19.2"},"b":{"version":"9.5.1"}}}`}},
			"",
			[]string{right, "warn: another node of the cluster has a defect: Elasticsearch 9.5.1 may apply *", "ok: the cluster is yellow"},
			[]string{"ok: *"},
		},
		"an index that rebuilds documents": {
			routes{"GET /a": {200, `{"a-20260101000000":{"settings":{"index":{"mode":"logsdb"}}}}`}},
			"",
			[]string{right, "ok: the cluster is yellow"},
			[]string{"fail: the alias points to a-20260101000000, which cannot be used: index.mode is logsdb, * -> use an index of index.mode standard *"},
		},
		"no security": {
			routes{"POST /_security/user/_has_privileges": {400, `{"error":"no handler found"}`}},
			"",
			[]string{right, "ok: the cluster is yellow"},
			[]string{"ok: the alias points to a-20260101000000"},
		},
		"no credentials": {
			routes{"GET /": {401, `{"error":{"type":"security_exception"}}`}},
			"",
			[]string{"fail: 127.0.0.1:* requires credentials -> set index.username and index.password, or index.apiKey"},
			nil,
		},
		"wrong credentials": {
			routes{"GET /": {401, `{"error":{"type":"security_exception"}}`}},
			password,
			[]string{"fail: 127.0.0.1:* refused the credentials -> check index.username and index.password, or index.apiKey"},
			nil,
		},
		"forbidden": {
			routes{"GET /": {403, `{"error":{"type":"security_exception"}}`}},
			password,
			[]string{"fail: 127.0.0.1:* does not let this user read its version -> " + elasticsearchRights},
			nil,
		},
		"starting": {
			routes{"GET /": {503, ""}},
			"",
			[]string{"fail: 127.0.0.1:* is not ready: it answered with status 503 -> wait until the cluster has started, and check its log"},
			nil,
		},
		"a web server": {
			routes{"GET /": {200, "<html>"}},
			"",
			[]string{"fail: 127.0.0.1:* is an unknown service, which returned status 200 and text/html; tutti needs Elasticsearch 7.17 or later, or OpenSearch 2.7 or later -> set index.url to one of these"},
			nil,
		},
		"a proxy": {
			routes{"GET /": {404, "<html>"}},
			"",
			[]string{"fail: 127.0.0.1:* answered with status 404 -> check that index.url is the address of an Elasticsearch or OpenSearch"},
			nil,
		},
		"a node without GET /": {
			routes{"GET /": {405, `{"error":"Incorrect HTTP method for uri [/] and method [GET], allowed: [DELETE]","status":405}`}, nodesPath: {200, fmt.Sprintf(nodesAnswer, "8.19.2")}},
			"",
			[]string{right, "ok: the cluster is yellow"},
			[]string{"ok: the alias points to a-20260101000000"},
		},
		"a node that does not know /": {
			routes{"GET /": {404, ""}, nodesPath: {200, fmt.Sprintf(nodesAnswer, "8.19.2")}}, "", []string{right, "ok: *"}, []string{"ok: *"},
		},
		"a node without GET / that is too old": {
			routes{"GET /": {405, ""}, nodesPath: {200, fmt.Sprintf(nodesAnswer, "7.16.3")}},
			"",
			[]string{"fail: 127.0.0.1:* is Elasticsearch 7.16.3; tutti needs Elasticsearch 7.17 or later, or OpenSearch 2.7 or later: earlier versions are not tested -> set index.url to one of these"},
			nil,
		},
		"a node without GET / that keeps its version to itself": {
			routes{"GET /": {405, ""}, nodesPath: {403, `{"error":{"type":"security_exception"}}`}},
			password,
			[]string{"fail: 127.0.0.1:* does not let this user read its version -> " + elasticsearchRights},
			nil,
		},
		"a node without GET / and without version": {
			routes{"GET /": {405, ""}, nodesPath: {200, `{}`}}, "", []string{"fail: 127.0.0.1:* is Elasticsearch, but does not return its version; tutti needs Elasticsearch 7.17 or later, or OpenSearch 2.7 or later -> *"}, nil,
		},
		"redirect": {
			routes{"GET /": {302, ""}}, "", []string{"fail: 127.0.0.1:* answered with a redirect -> set index.url to where it redirects"}, nil,
		},
		"OpenSearch 1": {
			routes{"GET /": {200, `{"cluster_name":"c1","version":{"distribution":"opensearch","number":"1.3.20"}}`}},
			"",
			[]string{"fail: 127.0.0.1:* is OpenSearch 1.3.20; tutti needs Elasticsearch 7.17 or later, or OpenSearch 2.7 or later: earlier versions have no flat_object fields, and before 2.4 no points in time -> set index.url to one of these"},
			nil,
		},
		"OpenSearch 2": {
			routes{"GET /": {200, `{"cluster_name":"c1","version":{"distribution":"opensearch","number":"2.19.3"}}`}},
			"",
			[]string{"ok: 127.0.0.1:* is OpenSearch 2.19.3, cluster c1", "ok: the cluster is yellow"},
			[]string{"ok: the alias points to*"},
		},
		"version 7": {
			routes{"GET /": {200, fmt.Sprintf(rootAnswer, "7.16.3")}},
			"",
			[]string{"fail: 127.0.0.1:* is Elasticsearch 7.16.3; tutti needs Elasticsearch 7.17 or later, or OpenSearch 2.7 or later: earlier versions are not tested -> set index.url to one of these"},
			nil,
		},
		"version 10": {
			routes{"GET /": {200, fmt.Sprintf(rootAnswer, "10.1.0")}},
			"",
			[]string{"warn: 127.0.0.1:* is Elasticsearch 10.1.0, cluster c1; tutti is not tested with this major version", "ok: the cluster is yellow"},
			[]string{"ok: the alias points to*"},
		},
		"red": {
			routes{"GET /_cluster/health": {200, `{"status":"red","unassigned_shards":3}`}},
			"",
			[]string{right, "warn: the cluster is red, 3 shards are missing -> see GET /_cluster/allocation/explain; an index whose primary shard is missing accepts no documents"},
			[]string{"ok: *"},
		},
		"state not shown": {
			routes{"GET /_cluster/health": {403, `{"error":{"type":"security_exception"}}`}},
			password,
			[]string{right, "warn: 127.0.0.1:* does not let this user read the health of the cluster -> " + elasticsearchRights},
			[]string{"ok: *"},
		},
		"licence": {
			routes{"GET /_license": {200, `{"license":{"status":"expired","type":"trial"}}`}},
			"",
			[]string{right, "ok: the cluster is yellow", "warn: the trial licence of the cluster is expired -> renew it, or *"},
			[]string{"ok: *"},
		},
		"no alias yet": {
			routes{"GET /a/_alias": {}, "POST /a/_count": {}},
			"",
			[]string{right, "ok: *"},
			[]string{"ok: will be created", "warn: repository a was never indexed -> run tutti index a"},
		},
		"empty": {
			routes{"POST /a/_count": {200, `{"count":0}`}},
			"",
			[]string{right, "ok: *"},
			[]string{
				"ok: the alias points to a-20260101000000",
				"warn: the index contains no documents of repository a -> run tutti index a",
			},
		},
		"nested documents": {
			routes{"POST /a/_count": {200, `{"count":0}`}, "POST /a/_count nested": {200, `{"count":2999}`}},
			"",
			[]string{right, "ok: *"},
			[]string{"ok: the alias points to a-20260101000000"},
		},
		"empty, and nothing nested": {
			routes{"POST /a/_count": {200, `{"count":0}`}, "POST /a/_count nested": {400, `{}`}},
			"",
			[]string{right, "ok: *"},
			[]string{
				"ok: the alias points to a-20260101000000",
				"warn: the index contains no documents of repository a -> run tutti index a",
			},
		},
		"not countable": {
			routes{"POST /a/_count": {400, `{}`}},
			"",
			[]string{right, "ok: *"},
			[]string{"ok: the alias points to a-20260101000000"},
		},
		"not counted": {
			routes{"POST /a/_count": {503, ""}},
			"",
			[]string{right, "ok: *"},
			[]string{"ok: the alias points to a-20260101000000"},
		},
		"an index of that name": {
			routes{"GET /a/_alias": {200, `{"a":{"aliases":{}}}`}},
			"",
			[]string{right, "ok: *"},
			[]string{"fail: an index has this name; tutti needs the name for an alias -> choose another indexName, or make the index an alias of the same documents: tutti mapping adopt a"},
		},
		"a data stream of that name": {
			routes{"GET /a/_alias": {200, `{".ds-a-000001":{"aliases":{}}}`}},
			"",
			[]string{right, "ok: *"},
			[]string{"fail: a data stream has this name; tutti needs the name for an alias -> choose another indexName"},
		},
		"two indices": {
			routes{"GET /a/_alias": {200, `{"x":{"aliases":{"a":{}}},"y":{"aliases":{"a":{},"b":{}}}}`}},
			"",
			[]string{right, "ok: *"},
			[]string{"fail: the alias points to several indices, and must point to one: x, y -> remove the alias from all but the oldest of them: tutti mapping adopt a"},
		},
		"alias not shown": {
			routes{"GET /a/_alias": {403, ""}},
			password,
			[]string{right, "ok: *"},
			[]string{"fail: 127.0.0.1:* does not let this user read the alias -> " + elasticsearchRights},
		},
		"alias not shown by OpenSearch": {
			routes{
				"GET /":         {200, `{"cluster_name":"c1","version":{"distribution":"opensearch","number":"2.19.3"}}`},
				"GET /a/_alias": {403, `{"error":{"type":"security_exception","reason":"no permissions for [indices:admin/aliases/get] and User [name=u]"},"status":403}`},
			},
			password,
			[]string{"ok: 127.0.0.1:* is OpenSearch 2.19.3, cluster c1", "ok: *"},
			[]string{"fail: 127.0.0.1:* does not let this user read the alias -> " + openSearchRights},
		},
		"OpenSearch that keeps its version to itself": {
			routes{"GET /": {403, `{"error":{"type":"security_exception","reason":"no permissions for [cluster:monitor/main] and User [name=u]"},"status":403}`}},
			password,
			[]string{"fail: 127.0.0.1:* does not let this user read its version -> " + openSearchRights},
			nil,
		},
		"privileges": {
			routes{"POST /_security/user/_has_privileges": {200, `{"index":{"a":{"write":false,"read":true},"a-*":{"write":false,"manage":false}}}`}},
			password,
			[]string{right, "ok: *"},
			[]string{"fail: missing privileges: manage, write -> grant the user's role these privileges on a and a-*"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(healthy(tt.changes))
			t.Cleanup(server.Close)
			report := look(t, fmt.Sprintf("url: %q%s", server.URL, tt.members))
			wantLines(t, of(report, "index"), tt.index...)
			wantLines(t, of(report, "index a"), tt.alias...)
		})
	}

	secure := httptest.NewTLSServer(healthy(nil))
	t.Cleanup(secure.Close)
	plain := httptest.NewServer(healthy(nil))
	t.Cleanup(plain.Close)
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	gone := testkit.NewAddress(t)
	for name, tt := range map[string]struct {
		index string
		want  []string
	}{
		"nothing listens": {
			"url: http://" + gone, []string{"fail: " + gone + " does not answer: nothing listens there -> check host and port, and that the service runs"},
		},
		"one of two": {
			fmt.Sprintf("url: 'http://%s,%s'", gone, plain.URL), []string{right, "warn: " + gone + " does not answer: nothing listens there -> *", "ok: the cluster is yellow"},
		},
		"unknown authority": {
			"url: " + secure.URL, []string{"fail: 127.0.0.1:* does not answer: its certificate is signed by an unknown authority -> set index.caFile to a PEM file of the authority's certificate"},
		},
		"known authority": {fmt.Sprintf("url: %q, caFile: %q", secure.URL, ca), []string{right, "ok: the cluster is yellow"}},
		"no certificate":  {fmt.Sprintf("url: %q, caFile: %q", secure.URL, empty), []string{"fail: index.caFile: " + empty + " is not a certificate: * -> the file must hold the certificates of the authorities, as PEM"}},
		"no file":         {fmt.Sprintf("url: %q, caFile: %q", secure.URL, dir+"/no"), []string{"fail: index.caFile: " + dir + "/no cannot be read: no such file or directory -> *"}},
		"TLS where is not": {
			"url: " + strings.Replace(plain.URL, "http:", "https:", 1), []string{"fail: *: it does not speak TLS -> use http:// instead of https://, if intended"},
		},
		"another name": {
			strings.Replace(fmt.Sprintf("url: %q, caFile: %q", secure.URL, ca), "127.0.0.1", "localhost", 1),
			[]string{"fail: localhost:* does not answer: its certificate is for another host name -> set index.serverName to a name that the certificate is for"},
		},
	} {
		t.Run(name, func(t *testing.T) { wantLines(t, of(look(t, tt.index), "index"), tt.want...) })
	}
}
