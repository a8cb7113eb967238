package schemas

import "slices"

// baseProperties is the base schema, required of every analysis (CONTRACT section 7), without its outer braces. A null
// version is what Song's clients send for none.
const baseProperties = `"studyId":{"type":"string"},` +
	`"analysisType":{"type":"object","required":["name"],"properties":{` +
	`"name":{"type":"string"},"version":{"type":["integer","null"],"minimum":1}}},` +
	`"files":{"type":"array","minItems":1,"items":{"type":"object",` +
	`"required":["dataType","fileName","fileSize","fileType","fileAccess","fileMd5sum"],"properties":{` +
	`"dataType":{"type":"string"},"fileName":{"type":"string"},"fileSize":{"type":"number","minimum":0},` +
	`"fileType":{"type":"string"},"fileAccess":{"type":"string","enum":["open","controlled"]},` +
	`"fileMd5sum":{"type":"string","pattern":"^[a-fA-F0-9]{32}$"}}}}`

// baseSchema is the base schema alone.
const baseSchema = `{"type":"object","properties":{` + baseProperties + `},"required":["studyId","analysisType","files"]}`

func baseRequired() []string { return []string{"studyId", "analysisType", "files"} }

// render merges the base schema into a dynamic one. What the dynamic schema says stays as it is written, in its order.
func render(dynamic string) ([]byte, error) {
	tree, err := parse(dynamic)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(dynamic)+len(baseSchema))
	out = append(out, '{')
	for i := range tree.members() {
		m := &tree.members()[i]
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendString(out, m.name), ':')
		switch {
		case m.name == "properties" && m.value.kind == kindObject:
			out = renderProperties(out, dynamic, &m.value)
		case m.name == "required" && m.value.kind == kindArray:
			out = renderRequired(out, dynamic, &m.value)
		default:
			out = append(out, dynamic[m.value.from:m.value.to]...)
		}
	}
	return append(out, '}'), nil
}

func renderProperties(out []byte, dynamic string, own *value) []byte {
	out = append(append(out, '{'), baseProperties...)
	if len(own.members()) > 0 {
		out = append(append(out, ','), dynamic[own.from+1:own.to]...)
		return out
	}
	return append(out, '}')
}

func renderRequired(out []byte, dynamic string, own *value) []byte {
	out = append(out, '[')
	for i, name := range baseRequired() {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendString(out, name)
	}
	for i := range own.items() {
		item := &own.items()[i]
		if !slices.Contains(baseRequired(), item.text) {
			out = append(append(out, ','), dynamic[item.from:item.to]...)
		}
	}
	return append(out, ']')
}
