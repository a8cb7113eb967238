package schemas

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/schemas/external"
	"tutti/schemas/jsontree"
	"tutti/schemas/validation"
	"tutti/schemas/violation"
)

// registrationSchema is the meta-schema: it describes the body of a registration. Members of the body that it does not name are
// ignored, as Song ignores them; unknown options are rejected, because a misspelt one would silently have no effect.
const registrationSchema = `{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "title": "Registration of an analysis type",
  "type": "object",
  "required": ["name", "schema"],
  "properties": {
    "name": {
      "description": "The name of the analysis type.",
      "type": "string",
      "pattern": "^[a-zA-Z0-9._-]+$",
      "maxLength": 512,
      "not": {"enum": ["registration", ".", ".."]}
    },
    "schema": {
      "description": "The dynamic schema. Without $schema it is of draft-07; the base schema is merged into it.",
      "type": "object",
      "required": ["type", "required", "properties"],
      "properties": {
        "type": {"const": "object"},
        "required": {"type": "array", "items": {"type": "string"}, "contains": {"const": "experiment"}},
        "properties": {
          "type": "object",
          "required": ["experiment"],
          "properties": {
            "experiment": {
              "description": "The schema of what the analysis is about, which is an object: rendering adds that. {} accepts every object.",
              "type": ["object", "boolean"]
            },
            "studyId": false,
            "analysisType": false,
            "files": false,
            "analysisId": false,
            "analysisState": false,
            "analysisTypeId": false
          }
        }
      }` + draftCheck + `
    },
    "options": {
      "description": "Checks beside the schema. One that is left out or null keeps its value, an empty list removes it.",
      "type": ["object", "null"],
      "additionalProperties": false,
      "properties": {
        "fileTypes": {
          "description": "The values that a file's fileType may have.",
          "type": ["array", "null"],
          "maxItems": 10000,
          "items": {"type": "string", "minLength": 1}
        },
        "externalValidations": {
          "description": "Services that decide whether a value is valid; a 2xx response means valid.",
          "type": ["array", "null"],
          "maxItems": 100,
          "items": {
            "type": "object",
            "required": ["url", "jsonPath"],
            "additionalProperties": false,
            "properties": {
              "url": {
                "description": "An absolute http or https URL in which {study} and {value} are replaced.",
                "type": "string",
                "minLength": 1
              },
              "jsonPath": {
                "description": "Where the values stand in an analysis, such as experiment.donors[*].id.",
                "type": "string",
                "minLength": 1
              }
            }
          }
        }
      }
    }
  }
}`

// draftCheck is the part of registrationSchema that is checked by package validation instead, because that supports more regular
// expressions.
const draftCheck = `,
      "if": {"required": ["$schema"]},
      "else": {"$ref": "http://json-schema.org/draft-07/schema#"}`

// registration is a parsed body.
type registration struct {
	name    string
	options datamodel.AnalysisOptions
	// schema is the dynamic schema without white space.
	schema string
}

// parseRegistration validates a body with the meta-schema, and checks what a meta-schema cannot express. Errors: CodeInvalid.
func (s *Service) parseRegistration(body []byte) (registration, error) {
	const what = "the registration is not valid"
	text := string(body)
	tree, err := jsontree.Parse(text)
	if err != nil {
		return registration{}, violation.NewList("", "json", "is not JSON: "+err.Error()).Invalid(errorIDParameter, what)
	}
	found, err := s.registration.Validate(&tree)
	switch {
	case errors.Is(err, jsontree.ErrTooMuchWork):
		return registration{}, violation.NewList("/schema", "schema", err.Error()).Invalid(errorIDMalformedSchema, what)
	case err != nil:
		return registration{}, core.WrapError(core.CodeInternal, "checking a registration", err)
	}
	if len(found.Violations) > 0 {
		return registration{}, classified(found).Invalid(errorIDOf(found, tree.Member("name") != nil), what)
	}
	dynamic := tree.Member("schema")
	var options datamodel.AnalysisOptions
	if given := tree.Member("options"); given != nil {
		if err := json.Unmarshal(body[given.From:given.To], &options); err != nil {
			return registration{}, core.WrapError(core.CodeInternal, "reading the options of a registration", err)
		}
		faults := external.CheckExternals(options.ExternalValidations)
		if len(faults.Violations) > 0 {
			return registration{}, faults.Within("/options/externalValidations").Invalid(errorIDParameter, what)
		}
	}
	if dynamic.Member("$schema") == nil {
		violations, err := validation.MetaViolations(dynamic, text)
		if err != nil {
			return registration{}, core.WrapError(core.CodeInternal, "checking a registration", err)
		}
		found = violations.Within("/schema")
	}
	if dynamic.Member("$ref") != nil && !validation.SiblingsCount(dynamic) {
		found.Add(core.Violation{
			Pointer: "/schema/$ref", Keyword: "$ref",
			Message: "would make this draft ignore all keywords beside it; put it into an allOf",
		})
	}
	if len(found.Violations) > 0 {
		return registration{}, found.Invalid(errorIDMalformedSchema, what)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, body[dynamic.From:dynamic.To]); err != nil {
		return registration{}, core.WrapError(core.CodeInternal, "reading the schema of a registration", err)
	}
	return registration{name: tree.Member("name").Text, options: options, schema: compact.String()}, nil
}

// classified explains the violation of a redefined base property, for which the meta-schema only says that it is not allowed.
func classified(found *violation.List) *violation.List {
	for i := range found.Violations {
		v := &found.Violations[i]
		name, ok := strings.CutPrefix(v.Pointer, "/schema/properties/")
		if ok && v.Keyword == "false" && slices.Contains(reservedProperties(), name) {
			v.Keyword, v.Message = "properties", "belongs to every analysis and may not be redefined"
		}
	}
	return found
}

// reservedProperties returns the properties of every analysis.
func reservedProperties() []string {
	return append(baseRequired(), "analysisId", "analysisState", "analysisTypeId")
}

// errorIDOf returns the ErrorID of the most severe violation of the meta-schema: first those of the parameters, then reserved names,
// then the schema. named is set if the registration has a name.
func errorIDOf(found *violation.List, named bool) string {
	id := errorIDViolation
	for _, v := range found.Violations {
		switch {
		case v.Pointer == "/schema" || strings.HasPrefix(v.Pointer, "/schema/"), v.Pointer == "" && v.Keyword == "required" && named:
		case v.Pointer == "/name" && v.Keyword == "not":
			id = errorIDIllegalName
		default:
			return errorIDParameter
		}
	}
	return id
}
