/* SPDX-License-Identifier: Apache-2.0 */
/* `completion`: the scripts for shells. Their data is the verb table; what is written out here is how to look at it. */
#include <stdio.h>
#include <string.h>
#include "programs/lessor/complete.h"
#include "programs/lessor/verb.h"

const char completion_more[] = "  lessor completion bash > ~/.local/share/bash-completion/completions/lessor\n"
                               "  source <(lessor completion bash)     for this shell alone\n"
                               "  lessor completion zsh > ~/.zfunc/_lessor     a folder that is in fpath\n"
                               "\n"
                               "Where lessor is installed as a package, both are in their places already.\n"
                               "\n"
                               "Exit status: 0 done, 2 wrong use.";

/* ---- bash ---- */

/* Bash splits at = too ("--for=2h" comes as three words): put together again before anything is looked at. */
static const char bash_code[] =
        "_lessor() {\n"
        "    local words=() word glue= verb= expects= place=0 at=0 command=0 ended= cur i\n"
        "    COMPREPLY=()\n"
        "    for ((i = 1; i <= COMP_CWORD; i++)); do\n"
        "        word=${COMP_WORDS[i]}\n"
        "        if [[ $word == '=' && ${#words[@]} -gt 0 && ${words[-1]} == --* && ${words[-1]} != *=* ]]; then\n"
        "            words[-1]+='='; glue=1\n"
        "        elif [[ $glue ]]; then\n"
        "            words[-1]+=$word; glue=\n"
        "        else\n"
        "            words+=(\"$word\")\n"
        "        fi\n"
        "    done\n"
        "    cur=${words[-1]}\n"
        "    verb=${words[0]}; at=1\n"
        "    if ((${#words[@]} == 1)); then _lessor_offer \"$(_lessor_verbs '')\" \"$cur\"; return; fi\n"
        "    if [[ ${words[1]} != -* && $(_lessor_verbs \"$verb\") ]]; then\n"
        "        if ((${#words[@]} == 2)); then _lessor_offer \"$(_lessor_verbs \"$verb\")|--help\" \"$cur\"; return; "
        "fi\n"
        "        verb+=\" ${words[1]}\"; at=2\n"
        "    fi\n"
        "    for ((i = at; i < ${#words[@]} - 1; i++)); do\n"
        "        word=${words[i]}\n"
        "        if [[ $expects ]]; then expects=\n"
        "        elif [[ $word == -- && ! $ended ]]; then ended=1\n"
        "        elif [[ $word == -* && ! $ended ]]; then\n"
        "            if [[ $word != *=* ]] && _lessor_value \"$verb $word\" > /dev/null; then expects=$word; fi\n"
        "        else\n"
        "            ((place++)); ((command)) || command=$i\n"
        "        fi\n"
        "    done\n"
        "    if [[ $expects ]]; then _lessor_offer \"$(_lessor_value \"$verb $expects\")\" \"$cur\"; return; fi\n"
        "    word=$(_lessor_operand \"$verb\" $((place + 1)))\n"
        "    if [[ $word == @command || $(_lessor_operand \"$verb\" 1) == @command && $place -gt 0 ]]; then\n"
        "        if ((place > 0)) || [[ $ended ]] || [[ $cur != -* ]]; then\n"
        "            _lessor_command $((COMP_CWORD - (${#words[@]} - 1) + (command ? command : ${#words[@]} - 1)))\n"
        "            return\n"
        "        fi\n"
        "    fi\n"
        "    if [[ $cur == --*=* && ! $ended ]]; then\n"
        "        glue=; [[ $COMP_WORDBREAKS == *=* ]] || glue=${cur%%=*}=\n"
        "        _lessor_offer \"$(_lessor_value \"$verb ${cur%%=*}\")\" \"${cur#*=}\" \"$glue\"\n"
        "    elif [[ $cur == -* && ! $ended ]]; then\n"
        "        _lessor_offer \"$(_lessor_options \"$verb\")\" \"$cur\"\n"
        "    else\n"
        "        _lessor_offer \"$word\" \"$cur\"\n"
        "    fi\n"
        "}\n"
        "\n"
        "# a|b|c or @KIND, what is typed of it, what to put in front\n"
        "_lessor_offer() {\n"
        "    local IFS=$'\\n'\n"
        "    case $1 in\n"
        "    '') ;;\n"
        "    @files) COMPREPLY=($(compgen -f -- \"$2\")); compopt -o filenames 2> /dev/null ;;\n"
        "    @users) COMPREPLY=($(compgen -u -- \"$2\")) ;;\n"
        "    @verbs) _lessor_offer \"$(_lessor_verbs '')\" \"$2\" ;;\n"
        "    @*) COMPREPLY=($(compgen -W \"$(\"${COMP_WORDS[0]}\" " COMPLETE_WORD
        " \"${1#@}\" 2> /dev/null | cut -f1)\" -- \"$2\")) ;;\n"
        "    *) COMPREPLY=($(compgen -P \"$3\" -W \"${1//|/$'\\n'}\" -- \"$2\")) ;;\n"
        "    esac\n"
        "}\n"
        "\n"
        "# another command, whose first word is at this place\n"
        "_lessor_command() {\n"
        "    local IFS=$'\\n' cur=${COMP_WORDS[COMP_CWORD]}\n"
        "    if declare -F _command_offset > /dev/null; then _command_offset \"$1\"\n"
        "    elif (($1 == COMP_CWORD)); then COMPREPLY=($(compgen -c -- \"$cur\"))\n"
        "    else COMPREPLY=($(compgen -f -- \"$cur\")); compopt -o filenames 2> /dev/null\n"
        "    fi\n"
        "}\n"
        "\n"
        "complete -F _lessor lessor\n";

/* Every verb with a row of its own, and its parts: @each is called with the words that name it. */
static void for_each_verb(void (*each)(const struct verb *verb))
{
        for (const struct verb *verb = verbs; verb->name; verb++) {
                each(verb);
                for (const struct verb *part = verb->sub; part && part->name; part++)
                        each(part);
        }
}

static void print_names(const struct verb *table, size_t skip)
{
        for (const struct verb *verb = table; verb->name; verb++)
                (void) printf("%s%s", verb == table ? "" : "|", verb->name + skip);
}

static void bash_group(const struct verb *verb)
{
        if (!verb->sub)
                return;
        (void) printf("    '%s') echo '", verb->name);
        print_names(verb->sub, strlen(verb->name) + 1);
        (void) puts("' ;;");
}

static void bash_options(const struct verb *verb)
{
        const struct option *option;
        (void) printf("    '%s') echo '", verb->name);
        for (int row = 0; (option = verb_option(verb, row)) != NULL; row++)
                (void) printf("--%s|", option->name);
        (void) puts("--help' ;;");
}

static void bash_values(const struct verb *verb)
{
        const struct option *option;
        for (int row = 0; (option = verb_option(verb, row)) != NULL; row++)
                if (option->value && option->value[0] != '[')
                        (void) printf("    '%s --%s') echo '%s' ;;\n", verb->name, option->name,
                                      option->words ? option->words : "");
}

static void bash_operands(const struct verb *verb)
{
        int place = 1;
        for (const char *at = verb->operands; at && *at != '\0'; at += strspn(at, " "), place++) {
                size_t n = strcspn(at, " ");
                (void) printf("    '%s %d') echo '%.*s' ;;\n", verb->name, place, (int) n, at);
                at += n;
        }
}

static void print_bash(void)
{
        (void) printf("# bash completion for lessor %s, made by `lessor completion bash` from its table of verbs\n\n"
                      "# the verbs, or the parts of one\n"
                      "_lessor_verbs() {\n    case $1 in\n    '') echo '",
                      LESSOR_VERSION);
        print_names(verbs, 0);
        (void) puts("|--help|--version' ;;");
        for_each_verb(bash_group);
        (void) puts("    esac\n}\n\n_lessor_options() {\n    case $1 in");
        for_each_verb(bash_options);
        (void) puts("    esac\n}\n\n# what the value of an option can be; fails for one that takes none\n"
                    "_lessor_value() {\n    case $1 in");
        for_each_verb(bash_values);
        (void) puts("    *) return 1 ;;\n    esac\n}\n\n# what a verb's word at this place can be\n"
                    "_lessor_operand() {\n    case \"$1 $2\" in");
        for_each_verb(bash_operands);
        (void) puts("    esac\n}\n");
        (void) fputs(bash_code, stdout);
}

/* ---- zsh ---- */

/* Inside '…' of a specification for _arguments. */
static void zsh_text(const char *text)
{
        for (; *text != '\0'; text++) {
                if (*text == '\'')
                        (void) fputs("'\\''", stdout);
                else if (strchr("[]:\\", *text))
                        (void) printf("\\%c", *text);
                else
                        (void) fputc(*text, stdout);
        }
}

/* The action of one place: who offers words for it. */
static void zsh_words(const char *words, size_t n)
{
        if (n == 0)
                (void) fputc(' ', stdout);
        else if (n == 6 && strncmp(words, "@files", n) == 0)
                (void) fputs("_files", stdout);
        else if (n == 6 && strncmp(words, "@users", n) == 0)
                (void) fputs("_users", stdout);
        else if (n == 6 && strncmp(words, "@verbs", n) == 0)
                (void) fputs("_lessor_verbs", stdout);
        else if (words[0] == '@')
                (void) printf(" _lessor_ask %.*s", (int) n - 1, words + 1);
        else {
                (void) fputc('(', stdout);
                for (size_t i = 0; i < n; i++)
                        (void) fputc(words[i] == '|' ? ' ' : words[i], stdout);
                (void) fputc(')', stdout);
        }
}

static void zsh_verb(const struct verb *verb)
{
        const struct option *option;
        bool is_command = verb->operands && strcmp(verb->operands, "@command") == 0;

        if (verb->sub && verb->options == no_options)
                return;
        (void) printf("    '%s')\n        _arguments -S%s \\\n", verb->name, is_command ? " -A \"-*\"" : "");
        for (int row = 0; (option = verb_option(verb, row)) != NULL; row++) {
                bool optional = option->value && option->value[0] == '[';
                (void) printf("            '--%s%s[", option->name, !option->value ? "" : optional ? "=-" : "=");
                zsh_text(option->help);
                (void) fputc(']', stdout);
                if (option->value) {
                        (void) fputs(optional ? "::" : ":", stdout);
                        zsh_text(option->value);
                        (void) fputc(':', stdout);
                        zsh_words(option->words ? option->words : "", option->words ? strlen(option->words) : 0);
                }
                (void) puts("' \\");
        }
        for (const char *at = verb->operands; at && *at != '\0' && !is_command; at += strspn(at, " ")) {
                size_t n = strcspn(at, " ");
                (void) fputs("            ':word:", stdout);
                zsh_words(at, n);
                (void) puts("' \\");
                at += n;
        }
        if (is_command)
                (void) puts("            '(-)1:command: _command_names -e' '*::arguments: _normal' \\");
        (void) puts("            '--help[help]' ;;");
}

static void zsh_list(const struct verb *table, size_t skip)
{
        for (const struct verb *verb = table; verb->name; verb++) {
                (void) printf("        '%s:", verb->name + skip);
                zsh_text(verb->brief);
                (void) puts("'");
        }
}

static void zsh_group(const struct verb *verb)
{
        if (!verb->sub)
                return;
        (void) printf("    %s)\n        parts=(\n", verb->name);
        zsh_list(verb->sub, strlen(verb->name) + 1);
        (void) puts("        ) ;;");
}

static void print_zsh(void)
{
        (void) printf("#compdef lessor\n"
                      "# zsh completion for lessor %s, made by `lessor completion zsh` from its table of verbs\n\n"
                      "_lessor_verbs() {\n    local -a all=(\n",
                      LESSOR_VERSION);
        zsh_list(verbs, 0);
        (void) puts("    )\n    _describe -t verbs verb all\n}\n\n"
                    "# what only lessord knows\n"
                    "_lessor_ask() {\n"
                    "    local -a found\n"
                    "    local line\n"
                    "    for line in ${(f)\"$(_call_program lessor lessor " COMPLETE_WORD " $1 2> /dev/null)\"}; do\n"
                    "        found+=(\"${line%%$'\\t'*}:${line#*$'\\t'}\")\n"
                    "    done\n"
                    "    _describe -t $1 $1 found\n"
                    "}\n\n"
                    "_lessor() {\n"
                    "    local -a parts\n"
                    "    local verb=$words[2]\n"
                    "    if ((CURRENT == 2)); then _lessor_verbs; return; fi\n"
                    "    case $verb in");
        for_each_verb(zsh_group);
        (void) puts("    esac\n"
                    "    if (($#parts)) && [[ $words[3] != -* ]]; then\n"
                    "        if ((CURRENT == 3)); then _describe -t verbs verb parts; return; fi\n"
                    "        verb+=\" $words[3]\"; shift words; ((CURRENT--))\n"
                    "    fi\n"
                    "    shift words; ((CURRENT--))\n"
                    "    case $verb in");
        for_each_verb(zsh_verb);
        (void) puts("    esac\n}\n\n_lessor \"$@\"");
}

int verb_completion_main(const struct verb *verb, int argc, char **argv)
{
        struct options o;
        const char *shell = NULL;

        options_init(&o, verb, argc, argv);
        for (int what = options_next(&o); what != OPTIONS_END; what = options_next(&o)) {
                if (what == OPTIONS_HELP)
                        return verb_print_help(verb);
                if (what == OPTIONS_WRONG)
                        return LESSOR_EXIT_USAGE;
                if (shell)
                        return verb_usage_error(verb, "one shell at a time");
                shell = o.value;
        }
        if (shell && strcmp(shell, "bash") == 0)
                print_bash();
        else if (shell && strcmp(shell, "zsh") == 0)
                print_zsh();
        else
                return verb_usage_error(verb, "for which shell? bash or zsh");
        return LESSOR_EXIT_OK;
}
