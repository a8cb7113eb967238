package analysis_test

import (
	"fmt"

	"tutti/internal/core/datamodel"
	"tutti/internal/metadata/analysis"
)

// A submission becomes the document of an analysis, whose state changes.
func Example() {
	p, err := analysis.ParseSubmission([]byte(`{"studyId": "S1", "analysisType": {"name": "variantCall"}, "files": [], "depth": 30.0}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	p.SetObjectIDs("A1", nil)
	d := analysis.New("S1", "A1", datamodel.AnalysisTypeRef{Name: "variantCall", Version: 3}, &p, 1_700_000_000_000_000)
	fmt.Println(string(d.Bytes()))
	d.SetState(datamodel.StateSuppressed, 1_700_000_000_000_001)
	fmt.Println(d.State, d.UpdatedAt)
	fmt.Println(string(analysis.Exported(d.Bytes())))
	// Output:
	// {"analysisId":"A1","studyId":"S1","analysisState":"UNPUBLISHED","createdAt":"2023-11-14T22:13:20.000000Z","updatedAt":"2023-11-14T22:13:20.000000Z","analysisStateHistory":[],"analysisType":{"name":"variantCall","version":3},"files":[],"depth":30.0}
	// SUPPRESSED 2023-11-14T22:13:20.000001Z
	// {"studyId":"S1","analysisType":{"name":"variantCall","version":3},"files":[],"depth":30.0}
}
