package prefill

// kubeadmSpec puts a KubeadmControlPlane's kubeadmConfigSpec together from those of
// the Machines, and says what could not be known.
//
// Upstream compares a Machine that joined with clusterConfiguration, joinConfiguration
// and everything beside the two; one that initialised the cluster in the same way with
// its initConfiguration moved over, and failing that by initConfiguration. Where the
// Machines differ, each part is taken from the most of them; clusterConfiguration from
// those that initialised the cluster, because kubeadm reads it from no other.
func (p *Proposal) kubeadmSpec(in Input) values {
	known := filter(p.Members, func(m Member) bool { return m.Config != nil })
	first := filter(known, func(m Member) bool { return !joins(m.Config) })
	joined := filter(known, func(m Member) bool { return joins(m.Config) })

	spec := values{}
	if m, ok := prevailing(known, partOf(func(c compared) values { return c.rest })); ok {
		spec = compact(without(valuesOf(m.Config.Spec), clusterPart, initPart, joinPart))
	}
	spec[clusterPart] = p.clusterConfiguration(in, first, joined)
	init, hasInit := prevailing(first, partOf(func(c compared) values { return without(c.init, "bootstrapTokens") }))
	join, hasJoin := prevailing(joined, partOf(func(c compared) values { return c.join }))
	switch {
	case hasInit && hasJoin:
		spec[initPart], spec[joinPart] = initOf(init), joinOf(join)
		// Tokens decide nothing where the two are alike, and belong nowhere else then.
		if text(asJoin(comparedOf(init.Config.Spec).init)) == text(comparedOf(join.Config.Spec).join) {
			delete(within(spec, initPart), "bootstrapTokens")
		}
	case hasInit:
		spec[initPart], spec[joinPart] = without(initOf(init), "bootstrapTokens"), asJoin(initOf(init))
		p.add(about(idUnknown, in.controlPlane(), "spec.kubeadmConfigSpec.joinConfiguration",
			"no Machine has joined with a configuration of its own: it is made from initConfiguration"))
	case hasJoin:
		spec[initPart], spec[joinPart] = asInit(joinOf(join)), joinOf(join)
		p.add(about(idUnknown, in.controlPlane(), "spec.kubeadmConfigSpec.initConfiguration",
			"no Machine is left that initialised the cluster: it is made from joinConfiguration, and is not used again"))
	}
	return compact(spec)
}

func partOf(part func(compared) values) func(Member) string {
	return func(m Member) string { return text(part(comparedOf(m.Config.Spec))) }
}

// initOf is an initConfiguration as a control plane may have it.
func initOf(m Member) values { return compact(within(valuesOf(m.Config.Spec), initPart)) }

// joinOf leaves out how one Machine found the cluster: the bootstrap provider writes
// that into each KubeadmConfig (kubeadmconfig_controller.go, reconcileDiscovery). A
// file that the user named stays.
func joinOf(m Member) values {
	join := compact(within(valuesOf(m.Config.Spec), joinPart))
	file := within(join, "discovery", "file")
	delete(join, "discovery")
	if len(file) > 0 {
		join["discovery"] = values{"file": file}
	}
	return join
}

func (p *Proposal) clusterConfiguration(in Input, first, joined []Member) values {
	const field = "spec.kubeadmConfigSpec.clusterConfiguration"
	key := partOf(func(c compared) values { return c.cluster })
	says := func(m Member) bool { return len(comparedOf(m.Config.Spec).cluster) > 0 }
	from, ok := prevailing(first, key)
	if !ok {
		from, ok = prevailing(filter(joined, says), key)
		f := about(idUnknown, in.controlPlane(), field,
			"no Machine is left that initialised the cluster: it is taken from one that joined, which need not have the whole of it")
		if !ok {
			f.Message = "no Machine is left that initialised the cluster, and no other has one: it is empty, and the next upgrade writes that into the workload cluster"
		}
		f.Remedy = "compare with the workload cluster: kubectl get configmap -n kube-system kubeadm-config -o yaml"
		p.add(f)
	}
	if !ok {
		return values{}
	}
	// The endpoint is the Cluster's; the bootstrap provider fills it in.
	return compact(without(within(valuesOf(from.Config.Spec), clusterPart), "controlPlaneEndpoint"))
}

// differ names every field in which a Machine's configuration is not what the control
// plane says, as far as upstream compares it.
func (p *Proposal) differ(spec compared) {
	for _, m := range p.Members {
		if m.Config == nil {
			continue
		}
		have := comparedOf(m.Config.Spec)
		found := differences("spec."+clusterPart, have.cluster, spec.cluster)
		if joins(m.Config) {
			found = append(found, differences("spec."+joinPart, have.join, spec.join)...)
			found = append(found, differences("spec."+initPart, have.init, nil)...)
		} else if text(asJoin(have.init)) != text(spec.join) {
			found = append(found, differences("spec."+initPart, have.init, spec.init)...)
		}
		found = append(found, differences("spec", have.rest, spec.rest)...)
		for _, d := range found {
			f := about(idDiffer, m.configID(), d.path, "is not what the control plane says for all Machines")
			f.Have, f.Want = shown(d.path, d.have), shown(d.path, d.want)
			if f.Have == f.Want {
				f.Want = "other content"
			}
			p.add(f)
		}
	}
}
