//go:build services

package demo_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestMCPClient: the official Python client of the Model Context Protocol, which shares no code with the SDK of the server, gets the
// same by the newest version of the protocol and by the handshake of earlier ones.
func TestMCPClient(t *testing.T) {
	python := os.Getenv("TUTTI_TEST_MCP_PYTHON")
	if python == "" {
		t.Fatal("TUTTI_TEST_MCP_PYTHON is not set: eval \"$(deploy/local/mcp-client | sed 's/^/export /')\"")
	}
	url := started(t) + "/mcp"
	for mode, version := range map[string]string{"auto": "2026-07-28", "legacy": "2025-11-25"} {
		t.Run(mode, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), python, filepath.Join("testdata", "mcp_client.py"), url, mode)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, &stderr)
			}
			for path, want := range map[string]string{
				"version": version, "server": "tutti",
				"tools":     `["build_sqon", "execute_query", "get_catalogue_fields", "get_sqon_schema", "index_status", "list_catalogues"]`,
				"templates": `["tutti://introspection/catalogues/{catalogueId}"]`,
				`resources.tutti://introspection/catalogues/analyses.fields.#(fieldName=="files.fileSize").pivot`: "files",
				`resources.tutti://introspection/sqon.operators.combination`:                                      `["and", "or", "not"]`,
				`list_catalogues.catalogues.#(catalogueId=="expression").error.code`:                              "index_not_found",
				`get_catalogue_fields.fields.#(fieldName=="files.fileSize").unit`:                                 "B",
				"get_sqon_schema.operators.combination":                                                           `["and", "or", "not"]`,
				"build_sqon.summary":                                                                              `studyId is "PANC-CA" and files.fileSize is greater than 0`,
				"all.facets.studyId.values.#":                                                                     "3",
				"all.hits.#":                                                                                      "3",
				"filtered.hits.#.studyId":                                                                         `["PANC-CA","PANC-CA","PANC-CA"]`,
				"index_status.repositories.#":                                                                     "3",
				"errors.unknown tool.error":                                                                       `did you mean "execute_query"?`,
				"errors.unknown catalogue.error":                                                                  `did you mean "analyses"?`,
				"errors.failed catalogue.error":                                                                   "index_not_found",
				"errors.broken sqon.error":                                                                        `did you mean "studyId"?`,
				"errors.clauses.error":                                                                            "clauses/0/op: ",
			} {
				got := gjson.GetBytes(out, path).String()
				if strings.HasPrefix(path, "errors.") && strings.Contains(got, want) {
					continue
				}
				if got != want {
					t.Errorf("%s: got %s, want %s", path, got, want)
				}
			}
			all, filtered := gjson.GetBytes(out, "all"), gjson.GetBytes(out, "filtered")
			total := filtered.Get("total").Int()
			if total == 0 || total >= all.Get("total").Int() || total != all.Get(`facets.studyId.values.#(value=="PANC-CA").count`).Int() {
				t.Errorf("%d of %s documents are of PANC-CA: %s", total, all.Get("total"), all.Get("facets"))
			}
			if resources := gjson.GetBytes(out, "resources").Map(); len(resources) != 5 || !strings.Contains(resources["tutti://introspection/catalogues/expression"].String(), "index_not_found") {
				t.Errorf("resources: %v", resources)
			}
		})
	}
}
