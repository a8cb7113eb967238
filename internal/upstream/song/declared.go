package song

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"tutti/internal/core"
	"tutti/internal/index/mapping"
	"tutti/internal/upstream"
	"tutti/internal/upstream/declared"
)

// schemasPage is the number of versions of analysis types of one response.
const schemasPage = 50

// Declared returns what all versions of the server's analysis types declare. A server that refuses the request declares nothing.
func (c *Client) Declared(ctx context.Context) (types *mapping.Types, none string, err error) {
	var b mapping.TypesBuilder
	for read := 0; ; {
		rows, total, err := c.schemas(ctx, read, &b)
		if status, refused := upstream.Refused(err); refused {
			return nil, fmt.Sprintf("GET schemas was answered with status %d", status), nil
		}
		if err != nil {
			return nil, "", err
		}
		if read += rows; rows == 0 || read >= total {
			return b.Types(), "", nil
		}
	}
}

// schemas reads one page of the versions of analysis types, from a row offset.
func (c *Client) schemas(ctx context.Context, offset int, b *mapping.TypesBuilder) (rows, total int, err error) {
	r := upstream.Request{
		Query: "unrenderedOnly=true&hideSchema=false&sort=version&sortOrder=ASC&limit=" + strconv.Itoa(schemasPage) +
			"&offset=" + strconv.Itoa(offset),
		Segments: []string{"schemas"},
	}
	err = c.calls.Document(ctx, r, "list of schemas", func(document []byte) error {
		var page struct {
			Count     *int `json:"count"`
			ResultSet []struct {
				core.AnalysisTypeRef

				Schema json.RawMessage `json:"schema"`
			} `json:"resultSet"`
		}
		if json.Unmarshal(document, &page) != nil || page.Count == nil {
			return upstream.FormatError("list of schemas")
		}
		for _, t := range page.ResultSet {
			declared.Schema(b, t.Schema, declared.Source(t.AnalysisTypeRef))
		}
		rows, total = len(page.ResultSet), *page.Count
		return nil
	})
	return rows, total, err
}
