package dataset

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
)

// ErrNoLyricRecord is returned for JSON that is not an object with the string members systemId, organization and entityName, the
// boolean isValid and the object data.
var ErrNoLyricRecord = errors.New("not a record of Lyric")

// LyricRecord is one record stored in a Lyric server.
type LyricRecord struct {
	SystemID     string
	Organization string
	EntityName   string
	IsValid      bool
	// Body is the record's JSON in the compound view, served byte for byte; Lyric has its members in another order in a list than by id.
	Body []byte
}

// ParseLyricRecord parses the members of body, which it keeps unchanged. Other JSON is ErrNoLyricRecord.
func ParseLyricRecord(body []byte) (LyricRecord, error) {
	if !gjson.ValidBytes(body) {
		return LyricRecord{}, fmt.Errorf("%w: not JSON", ErrNoLyricRecord)
	}
	names := []string{"systemId", "organization", "entityName"}
	found := gjson.GetManyBytes(body, names...)
	for i, name := range names {
		if found[i].Type != gjson.String {
			return LyricRecord{}, fmt.Errorf("%w: no %s", ErrNoLyricRecord, name)
		}
	}
	valid := gjson.GetBytes(body, "isValid")
	if !valid.IsBool() {
		return LyricRecord{}, fmt.Errorf("%w: no isValid", ErrNoLyricRecord)
	}
	if !gjson.GetBytes(body, "data").IsObject() {
		return LyricRecord{}, fmt.Errorf("%w: no data", ErrNoLyricRecord)
	}
	return LyricRecord{
		SystemID: found[0].String(), Organization: found[1].String(), EntityName: found[2].String(),
		IsValid: valid.Bool(), Body: body,
	}, nil
}

// WithValid returns the record with another isValid; only that value changes in the body.
func (r LyricRecord) WithValid(valid bool) LyricRecord {
	if found := gjson.GetBytes(r.Body, "isValid"); found.Index > 0 {
		r.Body = slices.Concat(r.Body[:found.Index], strconv.AppendBool(nil, valid), r.Body[found.Index+len(found.Raw):])
	}
	r.IsValid = valid
	return r
}

// Flat returns the record in the flat view: data without the related records, which are objects and arrays of them.
func (r LyricRecord) Flat() []byte {
	data := []byte{'{'}
	gjson.GetBytes(r.Body, "data").ForEach(func(name, value gjson.Result) bool {
		if value.IsObject() || value.IsArray() && value.Get("0").IsObject() {
			return true
		}
		if len(data) > 1 {
			data = append(data, ',')
		}
		data = append(append(append(data, name.Raw...), ':'), value.Raw...)
		return true
	})
	body, err := json.Marshal(struct {
		Data         json.RawMessage `json:"data"`
		EntityName   string          `json:"entityName"`
		IsValid      bool            `json:"isValid"`
		Organization string          `json:"organization"`
		SystemID     string          `json:"systemId"`
	}{append(data, '}'), r.EntityName, r.IsValid, r.Organization, r.SystemID})
	if err != nil {
		return []byte("{}") // not reached: data is a copy of valid JSON
	}
	return body
}
