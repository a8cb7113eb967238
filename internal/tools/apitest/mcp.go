package apitest

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/tidwall/gjson"
)

// SendMCP sends a message to /mcp, with more headers.
func SendMCP(t *testing.T, h Handler, message string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	a := Ask{Method: "POST", Target: "/mcp", Body: message, Header: http.Header{"Content-Type": {"application/json"}}}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			a.Host = headers[i+1]
		}
		a.Header.Set(headers[i], headers[i+1])
	}
	return Do(t, h, a)
}

// CallMCP calls a tool and returns its result.
func CallMCP(t *testing.T, h Handler, tool, arguments string, headers ...string) gjson.Result {
	t.Helper()
	res, body := SendMCP(t, h, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":`+strconv.Quote(tool)+`,"arguments":`+arguments+`}}`, headers...) //nolint:bodyclose // SendMCP closes it
	result := gjson.GetBytes(body, "result")
	if res.StatusCode != http.StatusOK || !result.Exists() {
		t.Fatalf("%s %s: %d %s", tool, arguments, res.StatusCode, body)
	}
	return result
}

// ListTools is a message that asks for the tools.
const ListTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
