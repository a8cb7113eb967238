package mcp

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tutti/http/api"
	"tutti/http/indexing"
	"tutti/http/search"
	"tutti/internal/core"
	"tutti/internal/filter/sqon"
)

//go:embed openapi.yaml
var document []byte

// Path is the path of the endpoint, without the base path.
const Path = "/mcp"

// contentTypeEvents is the other media type that clients of the protocol accept.
const contentTypeEvents = "text/event-stream"

// URIs of the resources.
const (
	uriCatalogues = "tutti://introspection"
	uriSQON       = "tutti://introspection/sqon"
	uriFields     = "tutti://introspection/catalogues/{catalogueId}"
)

const instructions = "Search metadata catalogues. Call list_catalogues, then get_catalogue_fields, build a filter with build_sqon, " +
	"and pass its sqon to execute_query. Results contain only what the token of the connection may see."

// Ports are the dependencies of a Surface; all are required.
type Ports struct {
	Catalogues   search.Catalogues
	GraphQL      search.GraphQL
	Repositories indexing.Repositories
}

// Config describes the server.
type Config struct {
	// Version is that of tutti.
	Version string
	// Auth reports whether tokens are checked, and Issuer is the issuer of accepted JSON Web Tokens, "" for none or any.
	Auth   bool
	Issuer string
	// PublicURL is the URL of the server with its base path; the request's own when "".
	PublicURL string
}

// Surface serves the Model Context Protocol by streamable HTTP, without sessions.
type Surface struct {
	ports   Ports
	cfg     Config
	schemas *sdk.SchemaCache
}

var _ api.Surface = (*Surface)(nil)

// New returns a Surface that uses ports.
func New(ports Ports, cfg Config) *Surface {
	return &Surface{ports: ports, cfg: cfg, schemas: sdk.NewSchemaCache()}
}

// OpenAPI implements api.Surface.
func (s *Surface) OpenAPI() []byte { return document }

// Register implements api.Surface. The router checks Host and Origin, so the SDK's own check, which rejects proxies on the same
// machine, is off.
func (s *Surface) Register(r *api.Router) {
	handler := sdk.NewStreamableHTTPHandler(s.server, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, DisableLocalhostProtection: true, PropagateRequestCancellation: true,
		MaxRequestBodyBytes: -1, // the router limits bodies
	})
	offers := []string{api.ContentTypeJSON, contentTypeEvents}
	r.HandleMedia(http.MethodPost, Path, offers, func(w http.ResponseWriter, r *http.Request) error {
		if _, err := api.Declared(r.Header, api.ContentTypeJSON); err != nil {
			return err
		}
		body, err := api.ReadBody(r)
		if err != nil {
			return err
		}
		if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
			// A batch would execute any number of queries at once.
			return &core.Error{Code: core.CodeInvalid, Message: "the body is an array; batches are not supported", Hint: "send each message in its own request"}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		// The SDK rejects clients that do not accept both, although the response is always JSON.
		r.Header.Set("Accept", strings.Join(offers, ", "))
		response := recorder{header: http.Header{}, status: http.StatusOK}
		handler.ServeHTTP(&response, r)
		return response.send(w)
	}, api.AllowParams(), api.OptionalToken())
	for _, path := range []string{metadataPath, metadataPath + Path} {
		r.Handle(http.MethodGet, path, func(w http.ResponseWriter, req *http.Request) error {
			return s.resourceMetadata(w, req, r.BasePath())
		}, api.AllowParams(), api.Open())
	}
}

// metadataPath is the path at which a client asks which tokens the endpoint accepts (RFC 9728, section 3).
const metadataPath = "/.well-known/oauth-protected-resource"

type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers,omitempty"`
	BearerMethods        []string `json:"bearer_methods_supported"`
	Name                 string   `json:"resource_name"`
}

func (s *Surface) resourceMetadata(w http.ResponseWriter, r *http.Request, basePath string) error {
	if !s.cfg.Auth {
		return core.NewError(core.CodeNotFound, "the server requires no tokens")
	}
	base := strings.TrimRight(s.cfg.PublicURL, "/")
	if base == "" {
		scheme := "http"
		if r.TLS != nil {
			scheme = "https"
		}
		base = scheme + "://" + r.Host + basePath
	}
	body := resourceMetadata{Resource: base + Path, BearerMethods: []string{"header"}, Name: "tutti"}
	if strings.HasPrefix(s.cfg.Issuer, "http") { // an issuer that is no URL cannot be asked
		body.AuthorizationServers = []string{s.cfg.Issuer}
	}
	return api.WriteJSON(w, http.StatusOK, body)
}

// recorder holds a response of the SDK, whose errors are plain text.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *recorder) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *recorder) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *recorder) Write(b []byte) (int, error) { return w.body.Write(b) }

// send writes the response to a client; it returns an error that the SDK wrote as text.
func (w *recorder) send(to http.ResponseWriter) error {
	media := w.header.Get("Content-Type")
	if w.status >= http.StatusBadRequest && !strings.HasPrefix(media, api.ContentTypeJSON) {
		return &core.Error{
			Code: core.CodeInvalid, Message: "the message was rejected: " + strings.TrimSpace(w.body.String()),
			Hint: "connect a client of the Model Context Protocol, with streamable HTTP",
		}
	}
	if w.body.Len() == 0 {
		to.WriteHeader(w.status)
		return nil
	}
	api.WriteWhole(to, w.status, media, w.body.Bytes())
	return nil
}

// call holds the HTTP request that the tools of one server read as.
type call struct {
	ports Ports
	r     *http.Request
}

// server returns the server of one request: its tools read as the request's caller.
func (s *Surface) server(r *http.Request) *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "tutti", Version: s.cfg.Version}, &sdk.ServerOptions{
		Instructions: instructions, SchemaCache: s.schemas,
	})
	c := call{s.ports, r}
	add(server, "list_catalogues", "Lists all catalogues with their state; a failed one has the code and message of its error.", c.listCatalogues)
	add(server, "get_catalogue_fields", "Lists the fields of a catalogue: name, type, unit, and the operators of each type.", c.fields)
	add(server, "get_sqon_schema", "Returns the JSON Schema and the description of SQON, the filter language.", c.sqonSchema)
	add(server, "build_sqon", "Builds and checks a SQON from clauses for a catalogue. Returns it with a summary in words, or the errors of every clause.", c.buildSQON)
	add(server, "execute_query", "Returns the number of documents that match a SQON, a page of them, and facets.", c.executeQuery)
	add(server, "index_status", "Returns the state of each repository that feeds the index.", c.indexStatus)
	c.addResources(server)
	return server
}

// add adds a tool that only reads. Errors and panics of run are results with isError and a text that says what to do.
func add[In any](server *sdk.Server, name, description string, run func(In) (any, error)) {
	tool := &sdk.Tool{Name: name, Description: description, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true}}
	sdk.AddTool(server, tool, func(_ context.Context, _ *sdk.CallToolRequest, in In) (_ *sdk.CallToolResult, out any, err error) {
		// The SDK runs tools in goroutines of its own, which the router's recovery does not cover.
		defer func() {
			if v := recover(); v != nil {
				out, err = nil, errors.New("an internal error occurred; try again, or report it to the operator")
			}
		}()
		out, err = run(in)
		return nil, out, toolError(err)
	})
}

// toolError returns an error whose text is safe to show and says what to do.
func toolError(err error) error {
	if err == nil {
		return nil
	}
	text := core.MessageOf(err)
	if e, ok := errors.AsType[*core.Error](err); ok && e.Hint != "" {
		text += "; " + e.Hint
	}
	return errors.New(text)
}

// catalogue returns the catalogue with an id, available and readable by the caller.
func (c call) catalogue(id string) (*core.Catalogue, error) {
	found := c.ports.Catalogues.Catalogues().ByID(id)
	switch {
	case found == nil:
		return nil, &core.Error{Code: core.CodeNotFound, Message: fmt.Sprintf("there is no catalogue %.60q", id), Hint: "list_catalogues lists their ids"}
	case found.Problem != nil:
		return nil, &core.Error{
			Code: core.CodeNotFound, Message: fmt.Sprintf("the catalogue has failed with %s: %s", found.Problem.Code, found.Problem.Message),
			Hint: "use another catalogue, or try again later",
		}
	}
	return found, nil
}

type none struct{}

type catalogueBody struct {
	ID           string                 `json:"catalogueId"`
	DocumentType string                 `json:"documentType"`
	Description  string                 `json:"description,omitempty"`
	Status       string                 `json:"status"`
	Error        *core.CatalogueProblem `json:"error,omitempty"`
}

type catalogueList struct {
	Status     core.CatalogueStatus `json:"status"`
	Catalogues []catalogueBody      `json:"catalogues"`
}

func (c call) listCatalogues(none) (any, error) {
	set := c.ports.Catalogues.Catalogues()
	list := catalogueList{Status: set.Status(), Catalogues: []catalogueBody{}}
	for _, one := range set.Catalogues {
		b := catalogueBody{one.ID, one.DocumentType, one.Description, "available", one.Problem}
		if one.Problem != nil {
			b.Status = "failed"
		}
		list.Catalogues = append(list.Catalogues, b)
	}
	return list, nil
}

type catalogueInput struct {
	CatalogueID string `json:"catalogueId" jsonschema:"the id of a catalogue, from list_catalogues"`
}

type fieldBody struct {
	Name        string `json:"fieldName"`
	DisplayName string `json:"displayName"`
	Type        string `json:"type"`
	Unit        string `json:"unit,omitempty"`
	Description string `json:"description,omitempty"`
	MultiValued bool   `json:"multiValued,omitempty"`
}

type fieldList struct {
	CatalogueID string              `json:"catalogueId"`
	Operators   map[string][]string `json:"operators"`
	Fields      []fieldBody         `json:"fields"`
}

func (c call) fields(in catalogueInput) (any, error) {
	found, err := c.catalogue(in.CatalogueID)
	if err != nil {
		return nil, err
	}
	list := fieldList{CatalogueID: found.ID, Operators: map[string][]string{}, Fields: []fieldBody{}}
	for _, f := range found.Fields {
		list.Operators[f.Type] = sqon.Operators(f.Type)
		list.Fields = append(list.Fields, fieldBody{f.Name, f.DisplayName, f.Type, f.Unit, f.Description, f.MultiValued})
	}
	return list, nil
}

func (c call) indexStatus(none) (any, error) {
	states, err := indexing.VisibleRepositories(c.r, c.ports.Repositories)
	if err != nil {
		return nil, err
	}
	return map[string]any{"repositories": states}, nil
}

// describeNames lists names for a message, at most ten.
func describeNames(names []string) string {
	const most = 10
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}
