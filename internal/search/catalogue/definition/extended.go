package definition

import "encoding/json"

// Extension returns the configuration of a field by its dotted name, false if there is none.
func (d *Definition) Extension(field string) (ExtendedField, bool) {
	for _, e := range d.Extended {
		if e.FieldName == field {
			return e, true
		}
	}
	return ExtendedField{}, false
}

// extendedField reads a validated item of extended.
func extendedField(n *node) ExtendedField {
	field := ExtendedField{
		FieldName:          n.member("fieldName").string(),
		DisplayName:        n.member("displayName").string(),
		DisplayType:        n.member("displayType").string(),
		IsActive:           n.member("isActive").flag(),
		IsArray:            n.member("isArray").flag(),
		PrimaryKey:         n.member("primaryKey").flag(),
		QuickSearchEnabled: n.member("quickSearchEnabled").flag(),
		RangeStep:          n.member("rangeStep").number(),
		Unit:               n.member("unit").string(),
		Description:        n.member("description").string(),
		Type:               n.member("type").string(),
	}
	if values := n.member("displayValues"); values != nil && len(values.members) > 0 {
		field.DisplayValues = make(map[string]json.RawMessage, len(values.members))
		for _, m := range values.members {
			field.DisplayValues[m.name] = m.value.raw()
		}
	}
	return field
}
