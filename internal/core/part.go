package core

import (
	"bytes"
	"encoding/json"
)

// Bounds of a Part, in bytes: of one value, and of all names and values together.
const (
	maxPartValue = 256
	maxPartBytes = 4 << 10
)

// Part describes a record of which a repository makes no document, because another record contains it: in a Lyric category with a
// central entity, the records of the other entities.
type Part struct {
	// Entity is the name of the record's entity, empty if it is not known.
	Entity string `json:"entity,omitempty"`
	// Fields are its texts and numbers, as text. It is nil if they are not known, or have more than 4 KiB.
	Fields map[string]string `json:"fields,omitempty"`
}

// NewPart returns the Part of an entity and of a JSON object with the record's fields. Values other than texts and numbers, and those
// over 256 bytes, are omitted.
func NewPart(entity string, data []byte) *Part {
	p := &Part{Entity: entity}
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return p
	}
	fields, size := make(map[string]string, len(members)), 0
	for name, value := range members {
		var text string
		switch value = bytes.TrimSpace(value); {
		case len(value) > maxPartValue:
			continue
		case value[0] == '"':
			if json.Unmarshal(value, &text) != nil {
				continue
			}
		case value[0] == '-' || value[0] >= '0' && value[0] <= '9':
			text = string(value)
		default:
			continue
		}
		fields[name] = text
		size += len(name) + len(text)
	}
	if len(fields) > 0 && size <= maxPartBytes {
		p.Fields = fields
	}
	return p
}
