// Starts the language server and hands files to it; all that it knows is in `coincide lsp`.
import * as path from "node:path";
import { commands, ExtensionContext, window, workspace } from "vscode";
import { LanguageClient, LanguageClientOptions, ServerOptions } from "vscode-languageclient/node";

const LANGUAGES = ["ecl", "opera", "say", "ecco", "eql", "match-recognize"];
// XML, YAML and TOML keep the languages that editors have for them; the server looks whether they are rules.
const PATTERNS = ["**/*.{amit,cdl}.{xml,yaml}", "**/*.{yml,yaml,toml}"];

let client: LanguageClient | undefined;

export async function activate(context: ExtensionContext): Promise<void> {
  context.subscriptions.push(commands.registerCommand("coincide.restart", restart));
  context.subscriptions.push(
    workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration("coincide")) await restart();
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await client?.stop();
}

async function restart(): Promise<void> {
  await client?.stop();
  await start();
}

async function start(): Promise<void> {
  const settings = workspace.getConfiguration("coincide");
  const [command = "coincide", ...args] = settings.get<string[]>("command", []);
  const folder = workspace.workspaceFolders?.[0]?.uri.fsPath;
  const server: ServerOptions = { command: found(command, folder), args, options: { cwd: folder } };
  const options: LanguageClientOptions = {
    documentSelector: [
      ...LANGUAGES.map((language) => ({ scheme: "file", language })),
      ...PATTERNS.map((pattern) => ({ scheme: "file", pattern })),
    ],
    initializationOptions: { events: settings.get("events"), mapping: settings.get("mapping") },
    synchronize: { fileEvents: workspace.createFileSystemWatcher("**/coincide.json") },
  };
  client = new LanguageClient("coincide", "Coincide", server, options);
  try {
    await client.start();
  } catch (error) {
    const message = `'${command} ${args.join(" ")}' cannot be started: pip install 'coincide[lsp]', or set coincide.command.`;
    void window.showErrorMessage(`${message} (${String(error)})`);
  }
}

// A path with a separator in it is relative to the workspace; a bare name is looked for as a shell would.
function found(command: string, folder: string | undefined): string {
  const relative = command.includes("/") || command.includes("\\");
  return relative && folder !== undefined ? path.resolve(folder, command) : command;
}
