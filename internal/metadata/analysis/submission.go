package analysis

import (
	"github.com/tidwall/gjson"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

// ParseSubmission parses the body of a submission. Errors are CodeInvalid: payload.parsing, or schema.violation for a member that is not
// the client's.
func ParseSubmission(body []byte) (Payload, error) {
	doc, err := parseObject(body)
	if err != nil {
		return Payload{}, err
	}
	if err := checkUnset(gjson.Parse(doc), "analysisId", "_id"); err != nil {
		return Payload{}, err
	}
	return newPayload(doc)
}

// ParseReplacement parses the body that replaces the analysis id. Errors are those of ParseSubmission, and CodeInvalid (malformed.parameter)
// when the body has the analysisId of another analysis.
func ParseReplacement(body []byte, id string) (Payload, error) {
	doc, err := parseObject(body)
	if err != nil {
		return Payload{}, err
	}
	if err := checkID(gjson.Parse(doc), id); err != nil {
		return Payload{}, err
	}
	return newPayload(doc)
}

// Patch is a JSON merge patch (RFC 7396) of an analysis.
type Patch struct{ change gjson.Result }

// ParsePatch parses a patch of the analysis id of a study. Errors are those of ParseReplacement, and CodeConflict (study.id.mismatch)
// when the patch changes studyId.
func ParsePatch(body []byte, study, id string) (Patch, error) {
	doc, err := parseObject(body)
	if err != nil {
		return Patch{}, err
	}
	change := gjson.Parse(doc)
	if err := checkID(change, id); err != nil {
		return Patch{}, err
	}
	if v := change.Get("studyId"); v.Exists() && v.Str != study {
		return Patch{}, studyMismatch()
	}
	return Patch{change}, nil
}

// Apply returns the payload of d after the patch, with the version of its type only if keepVersion is set or the patch names one.
// CodeInvalid (malformed.parameter) when the patch changes analysisState, and payload.parsing.
func (p Patch) Apply(d *Document, keepVersion bool) (Payload, error) {
	if v := p.change.Get("analysisState"); v.Exists() && v.Str != string(d.State) {
		err := parameterError("the state of an analysis cannot be changed by a patch")
		err.Hint = "publish, unpublish or suppress it"
		return Payload{}, err
	}
	return newPayload(string(appendMerged(nil, gjson.Parse(d.submission(keepVersion)), p.change)))
}

// ParseImported returns the payload of an analysis of another repository, with its files, which keep their object ids. Errors are
// CodeInvalid: payload.parsing, or malformed.parameter for a file without an object id.
func ParseImported(a *datamodel.ImportedAnalysis) (Payload, error) {
	data, err := parseObject(a.Data)
	if err != nil {
		return Payload{}, err
	}
	doc := []byte{'{'}
	for _, m := range membersOf(gjson.Parse(data)) {
		if m.name != "files" {
			doc = appendMember(doc, m.key, m.value)
		}
	}
	doc = append(appendMember(doc, `"files"`, ""), '[')
	for i, f := range a.Files {
		if i > 0 {
			doc = append(doc, ',')
		}
		doc = append(doc, f...)
	}
	text, err := parseObject(append(doc, ']', '}'))
	if err != nil {
		return Payload{}, err
	}
	p, err := newPayload(text)
	if err != nil {
		return Payload{}, err
	}
	for i := range p.Files {
		if p.Files[i].ObjectID == "" || !Storable(p.Files[i].ObjectID) {
			return Payload{}, parameterError("a file of the analysis has no object id")
		}
	}
	return p, nil
}

// checkID returns CodeInvalid when the body names another analysis, or has the member that no index accepts.
func checkID(sent gjson.Result, id string) error {
	if v := sent.Get("analysisId"); v.Exists() && v.Str != id {
		return parameterError("the payload's analysisId is not that of the path")
	}
	return checkUnset(sent, "_id")
}

// checkUnset returns CodeInvalid with violations when the body has one of the members, whose values a client does not set.
func checkUnset(sent gjson.Result, names ...string) error {
	var faults []core.Violation
	for _, name := range names {
		if sent.Get(name).Exists() {
			faults = append(faults, core.Violation{Pointer: "/" + name, Message: "must not be set", Keyword: "not"})
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return ViolationError("the analysis cannot be stored", faults)
}
