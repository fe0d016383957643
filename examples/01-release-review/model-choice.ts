import type { LanguageModelV3 } from "@ai-sdk/provider";

/** Providers that the example knows how to ask for a model; any other one of AI SDK 6 is a few lines more. */
const PROVIDERS = {
  openai: { package: "@ai-sdk/openai", key: "OPENAI_API_KEY", model: "gpt-5-mini" },
  anthropic: { package: "@ai-sdk/anthropic", key: "ANTHROPIC_API_KEY", model: "claude-sonnet-4-5" },
} as const;

type Provider = keyof typeof PROVIDERS;

/** Who plans: a provider's model, or null for the planners that come with the example. */
export interface ModelChoice {
  readonly name: string;
  readonly model: LanguageModelV3 | null;
}

/** A choice that cannot be made, in words for whoever made it. */
export class ModelChoiceError extends Error {
  override readonly name = "ModelChoiceError";
}

/**
 * Chooses by name (`openai/gpt-5-mini`, `anthropic`, `scripted`), or, without one, by the key that is set.
 * @throws ModelChoiceError for an unknown name, a missing key or a package that is not installed
 */
export async function chooseModel(
  wanted: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
  load: (packageName: string) => Promise<unknown> = (packageName) => import(packageName),
): Promise<ModelChoice> {
  const known = Object.keys(PROVIDERS) as Provider[];
  const name = wanted?.trim() || (known.find((provider) => env[PROVIDERS[provider].key]) ?? "scripted");
  if (name === "scripted") return { name, model: null };
  const [prefix = "", ...rest] = name.split("/");
  const provider = known.find((one) => one === prefix);
  if (provider === undefined) {
    throw new ModelChoiceError(
      `There is no model ${JSON.stringify(name)}. Use scripted, ${known.map((one) => `${one}/<model>`).join(" or ")}.`,
    );
  }
  const { package: packageName, key, model } = PROVIDERS[provider];
  if (!env[key]) {
    throw new ModelChoiceError(`${name} needs a key: set ${key}, or use --model scripted, which needs none.`);
  }
  const modelId = rest.join("/") || model;
  return { name: `${provider}/${modelId}`, model: (await createOf(packageName, provider, load))(modelId) };
}

async function createOf(
  packageName: string,
  provider: Provider,
  load: (packageName: string) => Promise<unknown>,
): Promise<(modelId: string) => LanguageModelV3> {
  try {
    const loaded = (await load(packageName)) as Record<string, (modelId: string) => LanguageModelV3>;
    const create = loaded[provider];
    if (create !== undefined) return create;
  } catch (cause) {
    throw new ModelChoiceError(
      `${packageName} is not installed, or cannot be loaded. Install it with \`npm install ${packageName}\`, or use --model scripted.`,
      { cause },
    );
  }
  throw new ModelChoiceError(`${packageName} has no ${provider}(): install the version made for AI SDK 6.`);
}
