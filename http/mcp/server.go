package mcp

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"tutti/http/api"
	"tutti/internal/base/spelling"
	"tutti/internal/core"
)

const instructions = "Search metadata catalogues. Call list_catalogues, then get_catalogue_fields, build a filter with build_sqon, " +
	"and pass its sqon to execute_query. Results contain only what the token of the connection may see."

// descriptions is a JSON array of the tools: name, title, description and inputSchema.
//
//go:embed tools.json
var descriptions []byte

// tool is one tool.
type tool struct {
	*sdk.Tool
	// arguments are the names of its arguments.
	arguments []string
	run       func(c *call, arguments json.RawMessage) (any, error)
}

// newTools returns all tools. Each reads as the caller of c.
func newTools() []tool {
	runs := map[string]func(*call, json.RawMessage) (any, error){
		"list_catalogues":      with((*call).listCatalogues),
		"get_catalogue_fields": with((*call).fields),
		"get_sqon_schema":      with((*call).sqonSchema),
		"build_sqon":           with((*call).buildSQON),
		"execute_query":        with((*call).executeQuery),
		"index_status":         with((*call).indexStatus),
	}
	var tools []tool
	for _, described := range gjson.ParseBytes(descriptions).Array() {
		one := tool{
			Tool: &sdk.Tool{
				Name: described.Get("name").String(), Title: described.Get("title").String(), Description: described.Get("description").String(),
				InputSchema: json.RawMessage(described.Get("inputSchema").Raw),
				Annotations: &sdk.ToolAnnotations{
					Title: described.Get("title").String(), ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: new(false), OpenWorldHint: new(false),
				},
			},
			run: runs[described.Get("name").String()],
		}
		described.Get("inputSchema.properties").ForEach(func(name, _ gjson.Result) bool {
			one.arguments = append(one.arguments, name.String())
			return true
		})
		tools = append(tools, one)
	}
	return tools
}

// with returns a function that decodes the arguments of a tool and runs it.
func with[In any](run func(*call, In) (any, error)) func(*call, json.RawMessage) (any, error) {
	return func(c *call, arguments json.RawMessage) (any, error) {
		var in In
		decoder := json.NewDecoder(bytes.NewReader(arguments))
		decoder.UseNumber() // values of filters keep their digits
		if err := decoder.Decode(&in); err != nil {
			return nil, argumentError(err)
		}
		return run(c, in)
	}
}

// argumentError returns the error of an argument of the wrong type.
func argumentError(err error) error {
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return core.WrapError(core.CodeInvalid, "the arguments do not fit the tool's input schema", err)
	}
	return &core.Error{
		Code: core.CodeInvalid, Message: fmt.Sprintf("the argument %s must not be of the type %s", e.Field, e.Value), Hint: "see the tool's input schema", Err: err,
	}
}

// call is one message of a client.
type call struct {
	*Surface
	r *http.Request
	// server is made on the first use; the SDK asks for it more than once, in the goroutine of the request.
	server *sdk.Server

	mu  sync.Mutex
	err error
}

type callKey struct{}

// note stores the first error of the call, for the log. Tools run in goroutines of the SDK.
func (c *call) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

func (c *call) noted() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// serverOf returns the server of one request: its tools read as the request's caller.
func serverOf(r *http.Request) *sdk.Server {
	c, ok := r.Context().Value(callKey{}).(*call)
	if !ok {
		return nil
	}
	if c.server == nil {
		c.server = c.newServer()
	}
	return c.server
}

// newServer returns the server of a call. It announces no changes of its lists: without sessions there is no client to tell.
func (c *call) newServer() *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "tutti", Title: "tutti", Version: c.cfg.Version}, &sdk.ServerOptions{
		Instructions: instructions,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}, Resources: &sdk.ResourceCapabilities{}},
		// What a caller reads is not for others.
		SetCacheable: func(_ context.Context, _ sdk.Request, cacheable *sdk.Cacheable) { cacheable.CacheScope = "private" },
	})
	for _, one := range c.tools {
		server.AddTool(one.Tool, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return c.runTool(one, r.Params.Arguments), nil
		})
	}
	c.addResources(server)
	server.AddReceivingMiddleware(c.guard)
	return server
}

// guard recovers panics, since the SDK handles messages in goroutines of its own, and prepares calls of unknown tools.
func (c *call) guard(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (result sdk.Result, err error) {
		defer func() {
			if v := recover(); v != nil {
				err = api.PanicError(v)
				c.note(err)
				result, err = nil, toolError(err)
			}
		}()
		if asked, ok := r.(*sdk.CallToolRequest); ok && !slices.ContainsFunc(c.tools, func(t tool) bool { return t.Name == asked.Params.Name }) {
			c.addUnknown(asked.Params.Name)
		}
		return next(ctx, method, r)
	}
}

// addUnknown adds a tool that does not exist to the server of this call, so that its result tells the model what there is: models do not
// see errors of the protocol, which the SDK returns.
func (c *call) addUnknown(name string) {
	names := make([]string, len(c.tools))
	for i, one := range c.tools {
		names[i] = one.Name
	}
	e := &core.Error{Code: core.CodeNotFound, Message: fmt.Sprintf("there is no tool %.60q", name), Hint: "the tools are " + strings.Join(names, ", ")}
	if near := spelling.Suggest(name, slices.Values(names)); near != "" {
		e.Message += fmt.Sprintf("; did you mean %q?", near)
	}
	c.server.AddTool(&sdk.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		c.cfg.Metrics.observe(unknownTool, e, 0)
		return failed(e), nil
	})
}

// runTool runs a tool. Its errors and panics are results with isError and a text that says what to do.
func (c *call) runTool(one tool, arguments json.RawMessage) (result *sdk.CallToolResult) {
	started := time.Now()
	var err error
	defer func() {
		if v := recover(); v != nil {
			err = api.PanicError(v)
		}
		if err != nil {
			result = failed(err)
		}
		if resultOf(err) != resultInvalid { // the client's mistakes are in its own log
			c.note(err)
		}
		c.cfg.Metrics.observe(one.Name, err, time.Since(started))
	}()
	if len(arguments) == 0 || string(arguments) == "null" {
		arguments = json.RawMessage("{}")
	}
	given, err := api.DecodeObjectOf("the value of arguments", arguments)
	if err == nil {
		err = given.Only(one.arguments...)
	}
	if err != nil {
		return nil
	}
	out, err := one.run(c, arguments)
	if err != nil {
		return nil
	}
	var text bytes.Buffer
	if err = api.EncodeJSON(&text, out); err != nil {
		return nil
	}
	encoded := bytes.TrimSpace(text.Bytes())
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(encoded)}}, StructuredContent: json.RawMessage(encoded)}
}

// failed returns the result of an error.
func failed(err error) *sdk.CallToolResult {
	result := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: toolError(err).Error()}}, IsError: true}
	if e, ok := errors.AsType[*clausesError](err); ok {
		result.StructuredContent = e.body()
	}
	return result
}

// toolError returns an error whose text is safe to show and says what to do.
func toolError(err error) error { return errors.New(core.DisplayOf(err)) }
