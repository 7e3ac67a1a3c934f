/* Stores a greeting, reads it back, and counts: greeting HOST NATIVE_PORT. */

#include <glimmer.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static glimmer_bytes bytes(const char *text)
{
    glimmer_bytes bytes = {(const uint8_t *)text, strlen(text)};
    return bytes;
}

static void check(const char *what, glimmer_outcome outcome, glimmer_outcome expected)
{
    if (outcome != expected) {
        fprintf(stderr, "%s: %s: %s\n", what, glimmer_outcome_text(outcome), glimmer_message());
        exit(1);
    }
}

static void print(const glimmer_item *item)
{
    const glimmer_bytes value = glimmer_item_value(item);
    printf("%.*s", (int)value.length, (const char *)value.data);
}

int main(int count, char **arguments)
{
    if (count != 3) {
        fprintf(stderr, "usage: greeting HOST NATIVE_PORT\n");
        return 2;
    }
    glimmer_outcome outcome;
    glimmer_settings settings = glimmer_settings_default();
    settings.deadline_us = 5000000;
    glimmer_client *client = glimmer_connect(arguments[1], (uint16_t)atoi(arguments[2]), &settings, &outcome);
    check("connect", outcome, GLIMMER_OUTCOME_OK);

    const glimmer_bytes key = bytes("greeting"), none = bytes("none"), visits = bytes("visits");
    check("put", glimmer_put(client, key, bytes("hello"), 7, 60), GLIMMER_OUTCOME_OK);
    check("add", glimmer_add(client, key, bytes("again"), 0, 0), GLIMMER_OUTCOME_NOT_STORED);

    glimmer_item *item = glimmer_item_new();
    check("get", glimmer_get_for_swap(client, key, item), GLIMMER_OUTCOME_OK);
    print(item);
    printf(", flags %u\n", (unsigned)glimmer_item_flags(item));
    const uint64_t cas = glimmer_item_cas(item);
    check("swap", glimmer_compare_and_swap(client, key, cas, bytes("hi"), 0, 0), GLIMMER_OUTCOME_OK);
    check("late swap", glimmer_compare_and_swap(client, key, cas, bytes("ho"), 0, 0), GLIMMER_OUTCOME_NOT_STORED);

    uint64_t number = 0;
    check("put", glimmer_put(client, visits, bytes("41"), 0, 0), GLIMMER_OUTCOME_OK);
    check("increment", glimmer_increment(client, visits, 1, &number), GLIMMER_OUTCOME_OK);
    printf("%llu visits\n", (unsigned long long)number);

    const glimmer_bytes keys[] = {key, none, visits};
    glimmer_item *items[] = {item, glimmer_item_new(), glimmer_item_new()};
    glimmer_outcome outcomes[3];
    check("get many", glimmer_get_many(client, keys, 3, items, outcomes), GLIMMER_OUTCOME_OK);
    for (int i = 0; i < 3; i++) {
        printf("%.*s: ", (int)keys[i].length, (const char *)keys[i].data);
        if (outcomes[i] == GLIMMER_OUTCOME_OK)
            print(items[i]);
        else
            printf("%s", glimmer_outcome_text(outcomes[i]));
        printf("\n");
        glimmer_item_free(items[i]);
    }

    check("touch", glimmer_touch(client, key, 10), GLIMMER_OUTCOME_OK);
    check("delete", glimmer_delete(client, key), GLIMMER_OUTCOME_OK);
    check("delete again", glimmer_delete(client, key), GLIMMER_OUTCOME_NOT_FOUND);
    glimmer_free(client);
    return 0;
}
