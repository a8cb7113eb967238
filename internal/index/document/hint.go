package document

import (
	"strings"

	"tutti/internal/index/mapping"
)

// Parts of the reasons of a value that is longer than Lucene's longest term.
const (
	longTermReason = `Document contains at least one immense term in field="`
	longKeyReason  = `Flattened field [`
)

// RejectionHint returns what to do about a document that an engine rejected for a reason, "" where the reason is not that of a limit.
func RejectionHint(reason string) string {
	if hint := mapping.LimitHint(reason); hint != "" {
		return hint
	}
	if _, rest, found := strings.Cut(reason, longTermReason); found {
		field, _, _ := strings.Cut(rest, `"`)
		for _, part := range []string{"._valueAndPath", "._value"} { // of a field of OpenSearch's flat_object
			if object, is := strings.CutSuffix(field, part); is {
				return longInObject(object)
			}
		}
		return "a value of the field " + field + " has more than 32,766 bytes, the most that the engine indexes: shorten it, or set " +
			"ignore_above of the field in the mapping file, so that longer values are stored but not searched; then retry"
	}
	if _, rest, found := strings.Cut(reason, longKeyReason); found && strings.Contains(rest, "immense") {
		object, _, _ := strings.Cut(rest, "]")
		return longInObject(object)
	}
	if strings.Contains(reason, inexactReason) {
		field, _, _ := strings.Cut(strings.TrimPrefix(reason, "["), "]")
		return "nothing declares the type of " + field + ", so that its numbers are doubles, which are exact up to 9007199254740992: declare it " +
			"as integer in the schema, or map it as long in the mapping file, and rebuild the index; or send it as a text; then retry"
	}
	return ""
}

func longInObject(object string) string {
	return "a value in the free-form object " + object + " has more than 32,766 bytes together with its path, the most that the engine " +
		"indexes: shorten it, or map the object with enabled: false in the mapping file, so that it is stored but not searched; then retry"
}
