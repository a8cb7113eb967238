package mapping

import (
	"encoding/json"
	"maps"
	"strconv"
)

// IgnoreAbove is the length in characters above which a derived keyword is stored but not indexed: the engine's limit of 32,766
// bytes for a term fits this many characters of up to four bytes each.
const IgnoreAbove = 8191

// ReservedInfo is the name of objects that are always flattened: Song's free-form additions, whose keys differ by submitter.
const ReservedInfo = "info"

// leaf returns a field of type t with the parameters of tutti's own fields.
func leaf(t Type) *Field {
	f := &Field{Type: t}
	if t == Keyword || t == Flattened {
		f.Params = map[string]json.RawMessage{"ignore_above": json.RawMessage(strconv.Itoa(IgnoreAbove))}
	}
	return f
}

func leaves(t Type, names ...string) map[string]*Field {
	out := make(map[string]*Field, len(names))
	for _, name := range names {
		out[name] = leaf(t)
	}
	return out
}

func (f *Field) addProperties(properties ...map[string]*Field) *Field {
	if f.Properties == nil {
		f.Properties = map[string]*Field{}
	}
	for _, set := range properties {
		maps.Copy(f.Properties, set)
	}
	return f
}

// Song returns the fields that every analysis of a Song repository has: Song's base schema, the blocks that older
// releases add below samples, and tutti's own repositories.
func Song() *Field {
	info := leaves(Flattened, ReservedInfo)
	specimen := (&Field{Type: Object}).addProperties(leaves(Keyword, "specimenId", "donorId", "submitterSpecimenId",
		"specimenType", "specimenTissueSource", "tumourNormalDesignation", "specimenClass"), leaves(Flattened, ReservedInfo))
	donor := (&Field{Type: Object}).addProperties(leaves(Keyword, "donorId", "studyId", "submitterDonorId", "gender",
		"donorGender"), leaves(Flattened, ReservedInfo))
	samples := (&Field{Type: Nested}).addProperties(leaves(Keyword, "sampleId", "specimenId", "submitterSampleId", "sampleType",
		"matchedNormalSubmitterSampleId"), leaves(Flattened, ReservedInfo),
		map[string]*Field{"specimen": specimen, "donor": donor})
	files := (&Field{Type: Nested}).addProperties(leaves(Keyword, "objectId", "studyId", "analysisId", "fileName", "fileType",
		"fileMd5sum", "fileAccess", "dataType"), leaves(Long, "fileSize"), leaves(Flattened, ReservedInfo))
	history := (&Field{Type: Nested}).addProperties(leaves(Keyword, "initialState", "updatedState"), leaves(Date, "updatedAt"))
	analysisType := (&Field{Type: Object}).addProperties(leaves(Keyword, "name"), leaves(Long, "version"))
	return Repositories().addProperties(leaves(Keyword, "analysisId", "studyId", "analysisState"),
		leaves(Date, "createdAt", "updatedAt", "publishedAt", "firstPublishedAt"), info,
		map[string]*Field{
			"analysisType": analysisType, "analysisStateHistory": history, "files": files, "samples": samples,
		})
}

// Lyric returns the fields that every record of a Lyric repository has: the record's envelope and tutti's own repositories. The
// fields of data are the dictionary's, and are added with the records; the object itself exists from the start, so that a catalogue
// below it can be described before the first record.
func Lyric() *Field {
	return Repositories().addProperties(leaves(Keyword, "systemId", "organization", "entityName"), leaves(Boolean, "isValid"),
		map[string]*Field{"data": {Type: Object}})
}

// repositories is the name of the field that tutti adds to every document.
const repositories = "repositories"

// Repositories returns a tree with the one field that tutti adds to every document.
func Repositories() *Field {
	block := (&Field{Type: Nested}).addProperties(leaves(Keyword, "code", "name", "organization", "country", "url", "type"))
	return NewRoot().addProperties(map[string]*Field{repositories: block})
}

// MissingOwn returns the field of known that tutti adds to every document, when tree, a user's mapping, does not define it: it
// identifies the documents of a repository. Nil when it is defined, or when the tree cannot have it.
func MissingOwn(tree, known *Field) *Field {
	block := known.Lookup(repositories)
	subobjects := tree.Params["subobjects"]
	if block == nil || tree.Lookup(repositories) != nil || tree.disabled() || subobjects != nil && string(subobjects) != "true" {
		return nil
	}
	return &Field{Type: Object, Properties: map[string]*Field{repositories: block.Clone()}}
}
