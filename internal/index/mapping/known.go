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

// NewLeaf returns a field of type t with the parameters of tutti's own fields.
func NewLeaf(t Type) *Field {
	f := &Field{Type: t}
	if t == Keyword || t == Flattened {
		f.Params = map[string]json.RawMessage{"ignore_above": json.RawMessage(strconv.Itoa(IgnoreAbove))}
	}
	return f
}

func leaves(t Type, names ...string) map[string]*Field {
	out := make(map[string]*Field, len(names))
	for _, name := range names {
		out[name] = NewLeaf(t)
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
	return Repositories().addProperties(leaves(Keyword, "analysisId", "studyId"), analysisFields(), files())
}

// SongAnalysis returns the fields of a document that has an analysis of Song below analysis.
func SongAnalysis() *Field {
	analysis := (&Field{Type: Object}).addProperties(leaves(Keyword, "analysisId", "studyId"), analysisFields(), files())
	return Repositories().addProperties(leaves(Keyword, "analysisId", "studyId", "state"), map[string]*Field{"analysis": analysis})
}

// SongFile returns the fields of a document of one file of an analysis, which is below analysis without its files.
func SongFile() *Field {
	analysis := (&Field{Type: Object}).addProperties(leaves(Keyword, "analysisId"), analysisFields())
	file := (&Field{Type: Object}).addProperties(leaves(Keyword, "name", "data_type", "md5sum"), leaves(Long, "size"))
	return Repositories().addProperties(fileFields(), map[string]*Field{"analysis": analysis, "file": file})
}

// SongFileV4 returns the fields of a document of one file in the form of Maestro 4.
func SongFileV4() *Field {
	analysis := (&Field{Type: Object}).addProperties(leaves(Keyword, "analysis_id", "analysis_state", "analysis_type"),
		leaves(Long, "analysis_version"), leaves(Date, "updated_at", "first_published_at", "published_at", "createdAt"),
		leaves(Flattened, ReservedInfo), history(), map[string]*Field{"experiment": {Type: Object}})
	index := (&Field{Type: Object}).addProperties(leaves(Keyword, "object_id", "name", "file_type", "md5sum", "data_type"), leaves(Long, "size"))
	file := (&Field{Type: Object}).addProperties(leaves(Keyword, "name", "md5sum", "data_type"), leaves(Long, "size"),
		map[string]*Field{"index_file": index})
	samples := (&Field{Type: Nested}).addProperties(leaves(Keyword, "sample_id", "submitter_sample_id", "sample_type",
		"matched_normal_submitter_sample_id"))
	specimens := (&Field{Type: Nested}).addProperties(leaves(Keyword, "specimen_id", "submitter_specimen_id", "specimen_type",
		"specimen_tissue_source", "tumour_normal_designation"), map[string]*Field{"samples": samples})
	donors := (&Field{Type: Nested}).addProperties(leaves(Keyword, "donor_id", "submitter_donor_id", "gender"),
		map[string]*Field{"specimens": specimens})
	return Repositories().addProperties(fileFields(), map[string]*Field{"analysis": analysis, "file": file, "donors": donors})
}

// fileFields returns the fields of every document of a file.
func fileFields() map[string]*Field {
	return leaves(Keyword, "object_id", "study_id", "data_type", "file_type", "file_access")
}

// history returns an analysis's field of its states.
func history() map[string]*Field {
	states := (&Field{Type: Nested}).addProperties(leaves(Keyword, "initialState", "updatedState"), leaves(Date, "updatedAt"))
	return map[string]*Field{"analysisStateHistory": states}
}

// files returns an analysis's field of its files.
func files() map[string]*Field {
	files := (&Field{Type: Nested}).addProperties(leaves(Keyword, "objectId", "studyId", "analysisId", "fileName", "fileType",
		"fileMd5sum", "fileAccess", "dataType"), leaves(Long, "fileSize"), leaves(Flattened, ReservedInfo))
	return map[string]*Field{"files": files}
}

// analysisFields returns the fields of an analysis but its ids and its files.
func analysisFields() map[string]*Field {
	specimen := (&Field{Type: Object}).addProperties(leaves(Keyword, "specimenId", "donorId", "submitterSpecimenId",
		"specimenType", "specimenTissueSource", "tumourNormalDesignation", "specimenClass"), leaves(Flattened, ReservedInfo))
	donor := (&Field{Type: Object}).addProperties(leaves(Keyword, "donorId", "studyId", "submitterDonorId", "gender",
		"donorGender"), leaves(Flattened, ReservedInfo))
	samples := (&Field{Type: Nested}).addProperties(leaves(Keyword, "sampleId", "specimenId", "submitterSampleId", "sampleType",
		"matchedNormalSubmitterSampleId"), leaves(Flattened, ReservedInfo),
		map[string]*Field{"specimen": specimen, "donor": donor})
	analysisType := (&Field{Type: Object}).addProperties(leaves(Keyword, "name"), leaves(Long, "version"))
	return (&Field{}).addProperties(leaves(Keyword, "analysisState"), leaves(Flattened, ReservedInfo), history(),
		leaves(Date, "createdAt", "updatedAt", "publishedAt", "firstPublishedAt"),
		map[string]*Field{"analysisType": analysisType, "samples": samples}).Properties
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

// Shared is the name of the field that tutti adds to the documents of an index that several repositories share. Nobody can search or
// read it.
const Shared = "_tutti"

// SharedState returns a tree with the field Shared: keywords that select the documents of a repository, and what is not indexed.
func SharedState() *Field {
	state := &Field{Type: Object, Params: map[string]json.RawMessage{"enabled": json.RawMessage("false")}}
	own := (&Field{Type: Object}).addProperties(leaves(Keyword, "scope"), map[string]*Field{"state": state})
	return NewRoot().addProperties(map[string]*Field{Shared: own})
}

// MissingOwn returns the fields of known that tutti adds to every document, if tree, a user's mapping, does not define them: they
// identify the documents of a repository. Nil when they are defined, or when the tree cannot have them.
func MissingOwn(tree, known *Field) *Field {
	subobjects := tree.Params["subobjects"]
	if tree.Disabled() || subobjects != nil && string(subobjects) != "true" {
		return nil
	}
	var missing *Field
	for _, name := range []string{repositories, Shared} {
		if own := known.Lookup(name); own != nil && tree.Lookup(name) == nil {
			if missing == nil {
				missing = &Field{Type: Object}
			}
			missing.addProperties(map[string]*Field{name: own.Clone()})
		}
	}
	return missing
}
