import { rememberCanonical } from "../../rules/canonical-json.ts";
import { DEFAULT_LIMITS, type DelegationLimits } from "../../domain/delegation/limits.ts";
import { ErrandError } from "../../domain/errand-error.ts";
import type { PublicationRef, TenantId } from "../../domain/id.ts";
import type { AgentDefinition, LoadedAgent } from "../ports/agent.ts";
import type { Store } from "../ports/store.ts";
import { type Publication, decodePublication, encodePublication, publicationRef } from "./publication.ts";

const LIMIT_NAMES = ["maxDepth", "maxChildren", "maxParallelChildren", "maxTreeRuns"] as const;

/**
 * Publishes agents and resolves them. Publishing is idempotent by digest; a roster is resolved to exact digests when its
 * owner is published, so a Run keeps the agents it was started with, whatever is published later.
 */
export class PublicationCatalog {
  readonly #store: Store;
  readonly #loaded = new Map<PublicationRef, LoadedAgent>();
  readonly #byDefinition = new Map<AgentDefinition, PublicationRef>();
  readonly #known = new Map<PublicationRef, Publication>();
  readonly #written = new Set<string>();

  constructor(store: Store) {
    this.#store = store;
  }

  /** Refs of what this process has loaded and can carry. */
  get carries(): ReadonlyMap<PublicationRef, LoadedAgent> {
    return this.#loaded;
  }

  loaded(ref: PublicationRef): LoadedAgent | undefined {
    return this.#loaded.get(ref);
  }

  /** The ref of a definition that was loaded here. */
  refOf(definition: AgentDefinition): PublicationRef | undefined {
    return this.#byDefinition.get(definition);
  }

  /** Loads an agent and everything in its roster; pure, nothing is written. */
  load(definition: AgentDefinition): LoadedAgent {
    return this.#load(definition, []);
  }

  /** Writes what is loaded into the store, for one tenant. Idempotent. */
  async publish(tenant: TenantId): Promise<void> {
    for (const ref of this.#loaded.keys()) {
      const key = `${tenant} ${ref}`;
      const publication = this.#known.get(ref);
      if (this.#written.has(key) || publication === undefined) continue;
      await this.#store.putPublication(tenant, {
        ref,
        name: publication.name,
        body: encodePublication(publication),
      });
      this.#written.add(key);
    }
  }

  /** The publication under a ref, loaded here or published by anybody. */
  async resolve(tenant: TenantId, ref: PublicationRef): Promise<Publication> {
    const known = this.#known.get(ref);
    if (known !== undefined) return known;
    const row = await this.#store.getPublication(tenant, ref);
    if (row === null) {
      throw new ErrandError(
        "UNKNOWN_AGENT",
        `No publication ${ref} exists.`,
        "Publish the agent, or check the digest.",
      );
    }
    const publication = stable(decodePublication(row.body));
    this.#known.set(ref, publication);
    return publication;
  }

  /** The newest publication of a name. */
  async head(tenant: TenantId, name: string): Promise<Publication> {
    const row = await this.#store.headPublication(tenant, name);
    if (row === null) {
      throw new ErrandError(
        "UNKNOWN_AGENT",
        `No agent named ${JSON.stringify(name)} is published.`,
        "Check the name, or list it in `agents`.",
      );
    }
    return decodePublication(row.body);
  }

  #load(definition: AgentDefinition, above: readonly AgentDefinition[]): LoadedAgent {
    const ref = this.#byDefinition.get(definition);
    const before = ref === undefined ? undefined : this.#loaded.get(ref);
    if (before !== undefined) return before;
    if (above.includes(definition)) {
      throw new ErrandError(
        "INVALID_AGENT",
        `The roster of ${definition.name} leads back to itself: ${[...above, definition].map((one) => one.name).join(" → ")}.`,
        "An agent is identified by its content, so a roster cannot be a circle; delegate to a separately published agent.",
      );
    }
    const roster = new Map<string, { ref: PublicationRef; recursive: boolean; terminalOnly: boolean }>();
    for (const entry of definition.roster) {
      const target = this.#load(entry.agent, [...above, definition]);
      const { name } = entry.agent;
      if (roster.has(name)) {
        throw new ErrandError(
          "INVALID_AGENT",
          `The roster of ${definition.name} names ${name} twice.`,
          "Give each agent of a roster its own name.",
        );
      }
      roster.set(name, {
        ref: target.ref,
        recursive: entry.recursive === true,
        terminalOnly: target.terminalOnly,
      });
    }
    const limits = checkedLimits(definition);
    const terminalOnly =
      !definition.mayAsk &&
      definition.kind !== "remote" &&
      definition.tools.every((tool) => !tool.mayNeedApproval) &&
      [...roster.values()].every((target) => target.terminalOnly);
    const content: Omit<Publication, "ref"> = {
      name: definition.name,
      description: definition.description,
      kind: definition.kind,
      inputSchema: definition.inputSchema,
      outputSchema: definition.outputSchema,
      limits,
      terminalOnly,
      roster: Object.fromEntries(
        [...roster].map(([name, one]) => [name, { ref: one.ref, recursive: one.recursive }]),
      ),
      definition: definition.definition,
    };
    const publication = stable({ ...content, ref: publicationRef(content) });
    const loaded: LoadedAgent = {
      ref: publication.ref,
      definition,
      roster,
      tools: new Map(definition.tools.map((tool) => [tool.name, tool])),
      limits,
      terminalOnly,
    };
    this.#loaded.set(publication.ref, loaded);
    this.#byDefinition.set(definition, publication.ref);
    this.#known.set(publication.ref, publication);
    return loaded;
  }
}

/** A publication never changes, and its schemas go into every contract made for it. */
function stable(publication: Publication): Publication {
  rememberCanonical(publication.inputSchema);
  rememberCanonical(publication.outputSchema);
  return publication;
}

function checkedLimits(definition: AgentDefinition): DelegationLimits {
  const limits = { ...DEFAULT_LIMITS, ...definition.limits };
  for (const name of LIMIT_NAMES) {
    if (!Number.isSafeInteger(limits[name]) || limits[name] < 1) {
      throw new ErrandError(
        "INVALID_AGENT",
        `${definition.name} sets ${name} to ${String(limits[name])}.`,
        `Give ${name} a whole number of at least 1.`,
      );
    }
  }
  return limits;
}
