package chart

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

const dir = "../../deploy/helm/whippet"

// variants are the values people give.
var variants = map[string]string{
	"defaults": "",
	"small":    "{metadataReplica: {replicas: 1}, partitionReplica: {replicas: 1}, frontDoor: {replicas: 1}, cluster: {replicationFactor: 1}, podDisruptionBudget: {enabled: false}}",
	"large": `{metadataReplica: {replicas: 5}, partitionReplica: {replicas: 12, zoneLabel: topology.kubernetes.io/zone, nodeSelector: {disk: ssd},
		tolerations: [{key: dedicated, operator: Exists}], storage: {size: 2Ti, class: fast}, env: [{name: WHIPPET_LOOPS, value: "4"}], annotations: {a: b}}}`,
	"secured": "{credentials: {existingSecret: mine}, frontDoor: {tlsSecret: door, service: {type: LoadBalancer, annotations: {a: b}}}, image: {pullSecrets: [registry]}, nats: {url: 'tls://nats.example:4222', existingSecret: nats}}",
	"watched": "{nats: {enabled: true}, serviceMonitor: {enabled: true, labels: {release: prometheus}}, perTopicMetrics: true}",
}

func values(t *testing.T, text string) (v map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestLint wants not even a warning.
func TestLint(t *testing.T) {
	for name, text := range variants {
		t.Run(name, func(t *testing.T) {
			for _, m := range lint.AllWithKubeVersion(dir, values(t, text), "streaming", &chartutil.KubeVersion{Version: "v1.32.0", Major: "1", Minor: "32"}).Messages {
				if m.Severity > support.InfoSev {
					t.Error(m)
				}
			}
		})
	}
}

// TestSchema has values refused that can not work.
func TestSchema(t *testing.T) {
	for _, text := range []string{
		"{metadataReplica: {replicas: 2}}", "{cluster: {replicationFactor: 2}}", "{frontdoor: {replicas: 2}}", "{log: {level: loud}}",
		"{partitionReplica: {replicas: 0}}", "{partitionReplica: {storage: {size: big}}}", "{nats: {url: 'http://nats'}}", "{frontDoor: {env: [{name: PATH}]}}",
	} {
		if _, err := render(values(t, text)); err == nil {
			t.Errorf("%s is taken", text)
		}
	}
}

// object is a rendered object of any kind.
type object struct {
	kind, name string
	text       []byte
}

func render(v map[string]any) (all []object, err error) {
	c, err := loader.Load(dir)
	if err != nil {
		return nil, err
	}
	return renderChart(c, v)
}

func renderChart(c *chart.Chart, v map[string]any) (all []object, err error) {
	release := chartutil.ReleaseOptions{Name: "main", Namespace: "streaming", IsInstall: true, Revision: 1}
	full, err := chartutil.ToRenderValues(c, v, release, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(c, full)
	if err != nil {
		return nil, err
	}
	for name, text := range files {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for part := range strings.SplitSeq("\n"+text, "\n---") {
			var head struct {
				Kind     string
				Metadata struct{ Name string }
			}
			if err := yaml.Unmarshal([]byte(part), &head); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", name, err, part)
			}
			if head.Kind != "" {
				all = append(all, object{head.Kind, head.Metadata.Name, []byte(part)})
			}
		}
	}
	slices.SortFunc(all, func(a, b object) int { return strings.Compare(a.kind+a.name, b.kind+b.name) })
	return all, nil
}

// manifest is what a rendering consists of, as Kubernetes reads it.
type manifest struct {
	services     map[string]corev1.Service
	sets         []appsv1.StatefulSet
	deployments  []appsv1.Deployment
	budgets      []policyv1.PodDisruptionBudget
	secrets      map[string]corev1.Secret
	monitors     int
	participants []pod
}

// pod is a container of a pod that a set or a deployment makes.
type pod struct {
	name     string
	ordinal  int // in a StatefulSet
	labels   map[string]string
	spec     corev1.PodSpec
	stateful bool
}

// read decodes strictly: a field that Kubernetes does not know is an error.
func read(t *testing.T, v map[string]any) (m manifest) {
	t.Helper()
	all, err := render(v)
	if err != nil {
		t.Fatal(err)
	}
	m.services, m.secrets = map[string]corev1.Service{}, map[string]corev1.Secret{}
	decode := func(o object, into any) {
		if err := yaml.UnmarshalStrict(o.text, into); err != nil {
			t.Errorf("%s %s: %v\n%s", o.kind, o.name, err, o.text)
		}
	}
	for _, o := range all {
		switch o.kind {
		case "Service":
			var s corev1.Service
			decode(o, &s)
			m.services[o.name] = s
		case "StatefulSet":
			var s appsv1.StatefulSet
			decode(o, &s)
			m.sets = append(m.sets, s)
			for i := range int(*s.Spec.Replicas) {
				m.participants = append(m.participants, pod{fmt.Sprintf("%s-%d", s.Name, i), i, s.Spec.Template.Labels, s.Spec.Template.Spec, true})
			}
		case "Deployment":
			var d appsv1.Deployment
			decode(o, &d)
			m.deployments = append(m.deployments, d)
			m.participants = append(m.participants, pod{d.Name + "-x", 0, d.Spec.Template.Labels, d.Spec.Template.Spec, false})
		case "PodDisruptionBudget":
			var b policyv1.PodDisruptionBudget
			decode(o, &b)
			m.budgets = append(m.budgets, b)
		case "Secret":
			var s corev1.Secret
			decode(o, &s)
			m.secrets[o.name] = s
		case "ServiceMonitor":
			m.monitors++
		default:
			t.Errorf("a %s is rendered and not checked", o.kind)
		}
	}
	return m
}

// TestSame renders the same twice, but for what is drawn at random.
func TestSame(t *testing.T) {
	given := values(t, "{credentials: {existingSecret: mine}}")
	first, err := render(given)
	if err != nil {
		t.Fatal(err)
	}
	again, err := render(given)
	if err != nil || !slices.EqualFunc(first, again, func(a, b object) bool { return bytes.Equal(a.text, b.text) }) {
		t.Errorf("two renderings differ: %v", err)
	}
}
