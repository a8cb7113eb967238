package song

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/index/mapping"
	"tutti/internal/upstream"
	"tutti/internal/upstream/declared"
)

// schemasPage is the number of versions of analysis types of one response.
const schemasPage = 50

// Declared returns what all versions of the server's analysis types declare. A server that refuses the request declares nothing.
func (c *Client) Declared(ctx context.Context) (types *mapping.Types, none string, err error) {
	var b mapping.TypesBuilder
	declaring := make(map[datamodel.AnalysisTypeRef]struct{})
	for read := 0; ; {
		rows, total, err := c.schemas(ctx, read, func(t datamodel.AnalysisTypeRef, schema json.RawMessage) {
			declared.Schema(&b, schema, declared.Source(t))
			declaring[t] = struct{}{}
		})
		if status, refused := upstream.Refused(err); refused {
			c.declaring.Store(nil)
			return nil, fmt.Sprintf("GET schemas was answered with status %d", status), nil
		}
		if err != nil {
			return nil, "", err
		}
		if read += rows; rows == 0 || read >= total {
			c.declaring.Store(&declaring)
			return b.Types(), "", nil
		}
	}
}

// Declares reports whether the last Declared has read the version of the analysis type of a record; true where the server refused the request,
// and for a record that names no version.
func (c *Client) Declares(rec core.Record) bool {
	declaring := c.declaring.Load()
	if declaring == nil {
		return true
	}
	of := gjson.GetBytes(rec.Body, "analysisType")
	name, version := of.Get("name"), of.Get("version")
	if name.Type != gjson.String || version.Type != gjson.Number {
		return true
	}
	_, known := (*declaring)[datamodel.AnalysisTypeRef{Name: name.String(), Version: int(version.Int())}]
	return known
}

// schemas calls each for the versions of analysis types of one page, from a row offset.
func (c *Client) schemas(ctx context.Context, offset int, each func(datamodel.AnalysisTypeRef, json.RawMessage)) (rows, total int, err error) {
	r := upstream.Request{
		Query: "unrenderedOnly=true&hideSchema=false&sort=version&sortOrder=ASC&limit=" + strconv.Itoa(schemasPage) +
			"&offset=" + strconv.Itoa(offset),
		Segments: []string{"schemas"},
	}
	err = c.calls.Document(ctx, r, "list of schemas", func(document []byte) error {
		var page struct {
			Count     *int `json:"count"`
			ResultSet []struct {
				datamodel.AnalysisTypeRef

				Schema json.RawMessage `json:"schema"`
			} `json:"resultSet"`
		}
		if json.Unmarshal(document, &page) != nil || page.Count == nil {
			return upstream.FormatError("list of schemas")
		}
		for _, t := range page.ResultSet {
			each(t.AnalysisTypeRef, t.Schema)
		}
		rows, total = len(page.ResultSet), *page.Count
		return nil
	})
	return rows, total, err
}
