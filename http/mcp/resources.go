package mcp

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tutti/http/api"
	"tutti/http/media"
	"tutti/internal/core"
)

// URIs of the resources. uriFields is that of a catalogue without its id.
const (
	uriCatalogues = "tutti://introspection"
	uriSQON       = "tutti://introspection/sqon"
	uriFields     = "tutti://introspection/catalogues/"
)

// addResources adds the documents of the introspection: the same as the tools return.
func (c *call) addResources(server *sdk.Server) {
	add := func(name, title, description, uri string, read func() (any, error)) {
		server.AddResource(&sdk.Resource{Name: name, Title: title, Description: description, URI: uri, MIMEType: media.JSON},
			func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				return c.resource(uri, read)
			})
	}
	add("catalogues", "Catalogues", "All catalogues with their state.", uriCatalogues, func() (any, error) { return c.listCatalogues(none{}) })
	add("sqon", "Filter language", "The JSON Schema and the description of SQON.", uriSQON, func() (any, error) { return c.sqonSchema(none{}) })
	for _, one := range c.ports.Catalogues.Catalogues().Catalogues {
		description := one.Description
		if one.Problem != nil {
			description = "This catalogue has failed with " + string(one.Problem.Code) + "."
		}
		add(one.ID, "Fields of "+one.ID, description, uriFields+url.PathEscape(one.ID), func() (any, error) {
			return c.fields(fieldsInput{CatalogueID: one.ID})
		})
	}
	server.AddResourceTemplate(&sdk.ResourceTemplate{
		Name: "fields", Title: "Fields of a catalogue", Description: "The fields of the catalogue with an id, and the operators of their types.",
		URITemplate: uriFields + "{catalogueId}", MIMEType: media.JSON,
	}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return c.resource(r.Params.URI, func() (any, error) {
			id, err := url.PathUnescape(strings.TrimPrefix(r.Params.URI, uriFields))
			if err != nil {
				return nil, core.WrapError(core.CodeNotFound, "the URI has a malformed percent escape", err)
			}
			return c.fields(fieldsInput{CatalogueID: id})
		})
	})
}

// resource returns the content of a resource.
func (c *call) resource(uri string, read func() (any, error)) (*sdk.ReadResourceResult, error) {
	body, err := read()
	if core.CodeOf(err) == core.CodeNotFound {
		return nil, sdk.ResourceNotFoundError(uri)
	}
	if err != nil {
		c.note(err)
		return nil, toolError(err)
	}
	var text bytes.Buffer
	if err := api.EncodeJSON(&text, body); err != nil {
		return nil, fmt.Errorf("encoding a resource: %w", err)
	}
	content := &sdk.ResourceContents{URI: uri, MIMEType: media.JSON, Text: strings.TrimSpace(text.String())}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{content}}, nil
}
