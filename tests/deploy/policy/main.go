// Evaluates conf/strimzi/sidecar/policy.yaml with the API server's own library.
//
//	policy POLICY.yaml POD.yaml         the pod as the MutatingAdmissionPolicy leaves it
//	policy POLICY.yaml CONNECT.yaml     what the ValidatingAdmissionPolicy says of a KafkaConnect: exit 0 or 1
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	celtypes "github.com/google/cel-go/common/types"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/admission"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/client-go/kubernetes/scheme"
	sigsyaml "sigs.k8s.io/yaml"
)

// The policies of the file, by their kind; a field that does not exist is an error.
func readPolicies(path string) (admissionv1.MutatingAdmissionPolicy, admissionv1.ValidatingAdmissionPolicy) {
	var mutating admissionv1.MutatingAdmissionPolicy
	var validating admissionv1.ValidatingAdmissionPolicy
	content, err := os.ReadFile(path)
	if err != nil {
		log.Fatal(err)
	}
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return mutating, validating
		}
		var kind metav1.TypeMeta
		if err == nil {
			err = sigsyaml.Unmarshal(document, &kind)
		}
		switch kind.Kind {
		case "MutatingAdmissionPolicy":
			err = errors.Join(err, sigsyaml.UnmarshalStrict(document, &mutating))
		case "ValidatingAdmissionPolicy":
			err = errors.Join(err, sigsyaml.UnmarshalStrict(document, &validating))
		}
		if err != nil {
			log.Fatal(err)
		}
	}
}

type evaluation struct {
	compiler   *plugincel.CompositedCompiler
	interfaces admission.ObjectInterfaces
	attributes *admission.VersionedAttributes
}

// A request that creates OBJECT.
func newEvaluation(object runtime.Object) *evaluation {
	compiler, err := plugincel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		log.Fatal(err)
	}
	interfaces := admission.NewObjectInterfacesFromScheme(scheme.Scheme)
	kind := object.GetObjectKind().GroupVersionKind()
	resource := kind.GroupVersion().WithResource("any")
	request := admission.NewAttributesRecord(object, nil, kind, "kafka", "any", resource, "", admission.Create, nil, false, nil)
	attributes, err := admission.NewVersionedAttributes(request, kind, interfaces)
	if err != nil {
		log.Fatal(err)
	}
	return &evaluation{compiler, interfaces, attributes}
}

// Every expression must hold; an error of one is an error of the policy.
func (e *evaluation) holds(accessors []plugincel.ExpressionAccessor) bool {
	compiled := e.compiler.CompileCondition(accessors, plugincel.OptionalVariableDeclarations{}, environment.StoredExpressions)
	if err := errors.Join(compiled.CompilationErrors()...); err != nil {
		log.Fatal(err)
	}
	request := plugincel.CreateAdmissionRequest(e.attributes.Attributes, metav1.GroupVersionResource(e.attributes.GetResource()),
		metav1.GroupVersionKind(e.attributes.VersionedKind))
	results, _, err := compiled.ForInput(context.Background(), e.attributes, request, plugincel.OptionalVariableBindings{}, nil,
		celconfig.RuntimeCELCostBudget)
	if err != nil {
		log.Fatal(err)
	}
	for _, result := range results {
		if result.Error != nil {
			log.Fatal(result.Error)
		}
		if result.EvalResult != celtypes.True {
			return false
		}
	}
	return true
}

func conditions(rows []admissionv1.MatchCondition) (accessors []plugincel.ExpressionAccessor) {
	for i := range rows {
		accessors = append(accessors, (*matchconditions.MatchCondition)(&rows[i]))
	}
	return accessors
}

// The pod as the policy leaves it; the policy's own when it does not meet the pod.
func mutated(policy admissionv1.MutatingAdmissionPolicy, pod runtime.Object) runtime.Object {
	e := newEvaluation(pod)
	if !e.holds(conditions(policy.Spec.MatchConditions)) {
		return pod
	}
	for _, mutation := range policy.Spec.Mutations {
		if mutation.JSONPatch == nil {
			log.Fatal("only JSON patches are known here")
		}
		compiled := e.compiler.CompileMutatingEvaluator(&patch.JSONPatchCondition{Expression: mutation.JSONPatch.Expression},
			plugincel.OptionalVariableDeclarations{HasPatchTypes: true}, environment.StoredExpressions)
		changed, err := patch.NewJSONPatcher(compiled).Patch(context.Background(), patch.Request{
			MatchedResource: e.attributes.GetResource(), VersionedAttributes: e.attributes, ObjectInterfaces: e.interfaces,
		}, celconfig.RuntimeCELCostBudget)
		if err != nil {
			log.Fatal(err)
		}
		changed.GetObjectKind().SetGroupVersionKind(e.attributes.VersionedKind)
		e = newEvaluation(changed)
	}
	return e.attributes.VersionedObject.Object()
}

func refuses(policy admissionv1.ValidatingAdmissionPolicy, object runtime.Object) string {
	e := newEvaluation(object)
	if !e.holds(conditions(policy.Spec.MatchConditions)) {
		return ""
	}
	for _, one := range policy.Spec.Validations {
		if !e.holds([]plugincel.ExpressionAccessor{&validating.ValidationCondition{Expression: one.Expression}}) {
			return one.Message
		}
	}
	return ""
}

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: policy POLICY.yaml OBJECT.yaml")
	}
	mutating, validating := readPolicies(os.Args[1])
	content, err := os.ReadFile(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	var object unstructured.Unstructured
	if err := sigsyaml.Unmarshal(content, &object.Object); err != nil {
		log.Fatal(err)
	}
	if object.GetKind() == "Pod" {
		pod := &corev1.Pod{}
		if err := sigsyaml.UnmarshalStrict(content, pod); err != nil {
			log.Fatal(err)
		}
		printed, err := sigsyaml.Marshal(mutated(mutating, pod))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(string(printed))
	} else if why := refuses(validating, &object); why != "" {
		fmt.Println("refused:", why)
		os.Exit(1)
	}
}
