package app_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"tutti/internal/tools/testkit"
)

// networkQuery queries all nodes of a federation.
const networkQuery = `{network{nodes{nodeId name hits status errors} aggregations{studyId{bucket_count buckets{key doc_count}} experiment__number{stats{count}}}}}`

// federated returns the configuration of a node: its remotes by name.
func federated(remotes map[string]string) string {
	var nodes []string
	for _, name := range []string{"east", "west", "dark", "gone", "there"} {
		if url, ok := remotes[name]; ok {
			nodes = append(nodes, fmt.Sprintf(`{"nodeId":%q,"displayName":%[1]q,"documentType":"analysis","graphqlUrl":%q,"requests":{"headers":["Authorization"]}}`, name, url))
		}
	}
	return `{"network":{"localNode":{"nodeId":"here","displayName":"here"},"remoteNodes":[` + strings.Join(nodes, ",") + `]}}`
}

// node starts a tutti with a catalogue and n published analyses of a study, and returns it and the URL of its GraphQL.
func node(t *testing.T, study string, n int, files folder, base string) (*builtIn, string) {
	t.Helper()
	dir := t.TempDir()
	b := newBuiltIn(t, plan{more: catalogueDir(dir)})
	all := folder{"nodes/base.json": based("analysis", aliasWord, base)}
	maps.Copy(all, files)
	all.write(b.world, dir)
	b.startChild()
	b.awaitPaused(false)
	b.prepareStudies(study)
	for range n {
		b.publish(study, b.submit(study))
	}
	b.awaitField("nodes", "experiment.number", "double")
	return b, b.url + "/nodes/graphql"
}

// network queries all nodes through one, until the answer is as wanted.
func (b *builtIn) network(want ...string) string {
	b.t.Helper()
	body := `{"query":` + fmt.Sprintf("%q", networkQuery) + `}`
	last := ""
	b.eventually(30*time.Second, func() (bool, string) {
		last = string(b.mustSend(http.MethodPost, "/nodes/graphql", body, http.StatusOK).raw)
		for _, part := range want {
			if !strings.Contains(last, part) {
				return false, "no " + part + " in " + last
			}
		}
		return true, ""
	})
	return last
}

// TestFederation: an answer counts the documents of all nodes; a node without introspection and one that cannot be reached have the
// status ERROR and no hits, and do not affect the others.
func TestFederation(t *testing.T) {
	t.Parallel()
	east, eastURL := node(t, "E1", 3, nil, "")
	_, darkURL := node(t, "D1", 2, nil, `"disableGraphQLIntrospection":true`)
	here, _ := node(t, "H1", 2, folder{"nodes/network.json": federated(map[string]string{
		"east": eastURL, "dark": darkURL, "gone": "http://" + testkit.NewAddress(t) + "/nodes/graphql",
	})}, "")
	answer := here.network(
		`{"nodeId":"east","name":"east","hits":3,"status":"OK"`, `{"nodeId":"here","name":"here","hits":2,"status":"OK"`,
		`{"nodeId":"dark","name":"dark","hits":0,"status":"ERROR"`, `{"nodeId":"gone","name":"gone","hits":0,"status":"ERROR"`,
		`{"key":"E1","doc_count":3},{"key":"H1","doc_count":2}`, `"stats":{"count":5}`,
	)
	if strings.Contains(answer, "127.0.0.1") || strings.Contains(answer, "D1") {
		t.Errorf("the answer contains the address of a node, or data of a node without introspection: %s", answer)
	}
	east.publish("E1", east.submit("E1"))
	here.network(`"hits":4`, `{"key":"E1","doc_count":4}`, `"stats":{"count":6}`)
}
