package document_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/upstream/song/document"
)

const block = `[{"code":"oslo"}]`

func recordOf(body string) core.Record {
	return core.Record{ID: "AN-1", Organization: "FJORD", State: "PUBLISHED", Body: []byte(body)}
}

// equal compares JSON texts.
func equal(t *testing.T, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("%v in %s", err, want)
	}
	if d := cmp.Diff(w, g); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestAnalysis(t *testing.T) {
	t.Parallel()
	body := `{"analysisId":"AN-1","studyId":"FJORD","analysisState":"PUBLISHED","files":[{"objectId":"O1"}],"note": "a \"quote\"" }`
	got := string(document.Analysis([]byte("before"), recordOf(body), []byte(block)))
	want := `before{"analysisId":"AN-1","studyId":"FJORD","state":"PUBLISHED","analysis":` + body + `,"repositories":` + block + `}`
	if got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
	rec := recordOf(`{}`)
	rec.State = ""
	equal(t, string(document.Analysis(nil, rec, []byte(block))), `{"analysisId":"AN-1","studyId":"FJORD","analysis":{},"repositories":`+block+`}`)
}

// split returns the documents of a record by their ids, and the ids in order.
func split(
	t *testing.T, make func(core.Record, []byte, func(string, []byte) error) error, body string,
) (ids []string, documents map[string]string) {
	t.Helper()
	documents = map[string]string{}
	if err := make(recordOf(body), []byte(block), func(id string, doc []byte) error {
		ids, documents[id] = append(ids, id), string(doc)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return ids, documents
}

const twoFiles = `{"analysisId":"AN-1","studyId":"FJORD","analysisState":"PUBLISHED","analysisType":{"name":"reads","version":2},
 "repositories":["kept below analysis"],"info":{"vessel":"Fram"},
 "files":[
  {"objectId":"O1","studyId":"FJORD","analysisId":"AN-1","fileName":"ice.bam","fileSize":12,"fileType":"BAM","fileMd5sum":"m1","fileAccess":"open","dataType":"reads"},
  {"objectId":"O2","studyId":"FJORD","analysisId":"AN-1","fileName":"ice.bam.bai","fileSize":3,"fileType":"BAI","fileMd5sum":"m2","fileAccess":"controlled","dataType":"index"}]}`

func TestFiles(t *testing.T) {
	t.Parallel()
	ids, docs := split(t, document.Files, twoFiles)
	if d := cmp.Diff([]string{"O1", "O2"}, ids); d != "" {
		t.Fatal(d)
	}
	analysis := `{"analysisId":"AN-1","analysisState":"PUBLISHED","analysisType":{"name":"reads","version":2},
		"repositories":["kept below analysis"],"info":{"vessel":"Fram"}}`
	equal(t, docs["O1"], `{"object_id":"O1","study_id":"FJORD","data_type":"reads","file_type":"BAM","file_access":"open",
		"file":{"name":"ice.bam","data_type":"BAM","size":12,"md5sum":"m1"},"analysis":`+analysis+`,"repositories":`+block+`}`)
	equal(t, docs["O2"], `{"object_id":"O2","study_id":"FJORD","data_type":"index","file_type":"BAI","file_access":"controlled",
		"file":{"name":"ice.bam.bai","data_type":"BAI","size":3,"md5sum":"m2"},"analysis":`+analysis+`,"repositories":`+block+`}`)
}

func TestFilesV4(t *testing.T) {
	t.Parallel()
	body := `{"analysisId":"AN-1","studyId":"FJORD","analysisState":"PUBLISHED","analysisType":{"name":"reads","version":2},
	 "updatedAt":"2024-01-02T03:04:05","publishedAt":"2024-01-03T03:04:05","firstPublishedAt":"2024-01-01T03:04:05","songServerId":"s",
	 "experiment":{"platform":"sonar"},"info":{"vessel":"Fram"},"depth":40,
	 "files":[
	  {"objectId":"O1","fileName":"ice.bam","fileSize":12,"fileType":"BAM","fileMd5sum":"m1","fileAccess":"open","dataType":"reads","info":{"lane":7,"name":"dropped"}},
	  {"objectId":"O2","fileName":"ICE.BAM.BAI","fileSize":3,"fileType":"BAI","fileMd5sum":"m2","fileAccess":"open","dataType":"index","info":{"lane":8}},
	  {"objectId":"O3","fileName":"snow.vcf.gz","fileSize":4,"fileType":"VCF","fileMd5sum":"m3","fileAccess":"open","dataType":"calls"},
	  {"objectId":"O4","fileName":"snow.vcf.gz.tbi","fileSize":1,"fileType":"TBI","fileMd5sum":"m4","fileAccess":"open","dataType":"index"},
	  {"objectId":"O5","fileName":"log.xml","fileSize":1,"fileType":"XML","fileMd5sum":"m5","fileAccess":"open","dataType":"log"}],
	 "samples":[
	  {"sampleId":"SA1","submitterSampleId":"sa-1","sampleType":"DNA","matchedNormalSubmitterSampleId":null,"info":{"box":1},
	   "specimen":{"specimenId":"SP1","donorId":"DO1","submitterSpecimenId":"sp-1","specimenType":"solid","info":{"cold":true}},
	   "donor":{"donorId":"DO1","submitterDonorId":"do-1","studyId":"FJORD","gender":"Other","info":{"cohort":"north"}}},
	  {"sampleId":"SA2","submitterSampleId":"sa-2","sampleType":"RNA",
	   "specimen":{"specimenId":"SP2","donorId":"DO2","submitterSpecimenId":"sp-2","tumourNormalDesignation":"Normal","specimenTissueSource":"blood"},
	   "donor":{"donorId":"DO2","submitterDonorId":"do-2","gender":"Female"}},
	  {"sampleId":"SA3","submitterSampleId":"sa-3","sampleType":"RNA","specimen":{"specimenId":"SP1","donorId":"DO1"},"donor":{"donorId":"DO1"}},
	  {"sampleId":"SA4","submitterSampleId":"sa-4","sampleType":"RNA","specimen":{"specimenId":"SP3","donorId":"DO1"},"donor":{"donorId":"DO1"}}]}`
	ids, docs := split(t, document.FilesV4, body)
	if d := cmp.Diff([]string{"O1", "O3"}, ids); d != "" {
		t.Fatal(d)
	}
	shared := `"analysis":{"analysis_id":"AN-1","analysis_state":"PUBLISHED","analysis_type":"reads","analysis_version":2,
		 "updated_at":"2024-01-02T03:04:05","published_at":"2024-01-03T03:04:05","first_published_at":"2024-01-01T03:04:05",
		 "experiment":{"platform":"sonar"},"info":{"vessel":"Fram"},"depth":40},
		"donors":[
		 {"donor_id":"DO1","submitter_donor_id":"do-1","gender":"Other","cohort":"north","specimens":[
		  {"specimen_id":"SP1","submitter_specimen_id":"sp-1","specimen_type":"solid","cold":true,"samples":[
		   {"sample_id":"SA1","submitter_sample_id":"sa-1","sample_type":"DNA","matched_normal_submitter_sample_id":null,"box":1},
		   {"sample_id":"SA3","submitter_sample_id":"sa-3","sample_type":"RNA"}]},
		  {"specimen_id":"SP3","samples":[{"sample_id":"SA4","submitter_sample_id":"sa-4","sample_type":"RNA"}]}]},
		 {"donor_id":"DO2","submitter_donor_id":"do-2","gender":"Female","specimens":[
		  {"specimen_id":"SP2","submitter_specimen_id":"sp-2","tumour_normal_designation":"Normal","specimen_tissue_source":"blood","samples":[
		   {"sample_id":"SA2","submitter_sample_id":"sa-2","sample_type":"RNA"}]}]}],
		"repositories":` + block + `}`
	equal(t, docs["O1"], `{"object_id":"O1","study_id":"FJORD","data_type":"reads","file_type":"BAM","file_access":"open","lane":7,"name":"dropped",
		"file":{"name":"ice.bam","size":12,"md5sum":"m1","data_type":"reads","lane":7,"index_file":{
		 "object_id":"O2","name":"ICE.BAM.BAI","file_type":"BAI","size":3,"md5sum":"m2","data_type":"index","lane":8}},`+shared)
	equal(t, docs["O3"], `{"object_id":"O3","study_id":"FJORD","data_type":"calls","file_type":"VCF","file_access":"open",
		"file":{"name":"snow.vcf.gz","size":4,"md5sum":"m3","data_type":"calls","index_file":{
		 "object_id":"O4","name":"snow.vcf.gz.tbi","file_type":"TBI","size":1,"md5sum":"m4","data_type":"index"}},`+shared)
}

// TestNoFiles: an analysis without files has no documents.
func TestNoFiles(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `{"files":[]}`, `{"files":null}`} {
		if ids, _ := split(t, document.Files, body); ids != nil {
			t.Errorf("%s has the files %s", body, ids)
		}
		if ids, _ := split(t, document.FilesV4, body); ids != nil {
			t.Errorf("%s has the files %s", body, ids)
		}
	}
}

// TestUnusableFile: a file that cannot be a document makes no document of its record either.
func TestUnusableFile(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, body, want string }{
		{"no list", `{"files":{"objectId":"O1"}}`, "files is not a list"},
		{"no object", `{"files":[{"objectId":"O1"},3]}`, "file 2: objectId is empty"},
		{"no id", `{"files":[{"objectId":"O1"},{"fileName":"a"}]}`, "file 2: objectId is empty"},
		{"number", `{"files":[{"objectId":7}]}`, "file 1: objectId is empty"},
		{"long id", `{"files":[{"objectId":"` + strings.Repeat("x", 513) + `"}]}`, "file 1: objectId has 513 bytes, the limit is 512"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, make := range []func(core.Record, []byte, func(string, []byte) error) error{document.Files, document.FilesV4} {
				err := make(recordOf(tt.body), []byte(block), func(id string, _ []byte) error {
					t.Errorf("document %s", id)
					return nil
				})
				if core.CodeOf(err) != core.CodeInvalid || core.MessageOf(err) != tt.want {
					t.Errorf("error %v, want %q", err, tt.want)
				}
			}
		})
	}
}

// TestStop: an error of the callback ends the documents.
func TestStop(t *testing.T) {
	t.Parallel()
	stop, n := errors.New("stop"), 0
	err := document.Files(recordOf(twoFiles), []byte(block), func(string, []byte) error { n++; return stop })
	if !errors.Is(err, stop) || n != 1 {
		t.Errorf("%d documents and the error %v", n, err)
	}
}
